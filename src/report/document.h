// The document of a report: everything that the page shows of one experiment, as one value. docs/formats.md describes
// it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cadre/train.h"
#include "cadre/tune/result.h"
#include "cadre/value.h"
#include "report/curves.h"
#include "train/timeline.h"

namespace cadre::report {

inline constexpr std::int64_t kDocumentVersion = 1;
inline constexpr std::size_t kMostTrials = 10'000;  // with cells and curves
inline constexpr std::size_t kMostFailures = 200;   // with their last lines
inline constexpr std::size_t kMostCheckpoints = 20'000;
inline constexpr std::size_t kMostSpans = 20'000;  // of each lane of a training run, and as many of its reports

// The parts that only a training run has.
struct RunParts {
  std::string status = {};  // "FINISHED", "RESTARTING", ...
  std::int64_t attempts = 0;
  std::vector<train::ReportedCheckpoint> checkpoints = {};
  train::Timeline timeline = {};
};

// An experiment, or a training run as an experiment of one trial, as it was read from its store.
struct Source {
  const tune::ResultGrid& results;
  std::vector<std::string> parameters = {};                        // paths in the configs that differ between trials
  std::vector<std::pair<std::string, std::string>> options = {};   // a label and a text for each
  std::function<std::string(const std::filesystem::path&)> place;  // the text for a path: the path, or a URI
  // The last lines of a trial's error.txt; empty: there are none.
  std::function<std::string(const tune::Result&)> last_errors;
  std::string progress = {};         // "37 %, 2 of 5 trials have ended; about 12 min left"; empty: it has finished
  std::optional<RunParts> run = {};  // empty: an experiment
  double read = 0;                   // seconds since 1970
};

// Reads the results that `source.results` reads on demand, and nothing else but what `last_errors` does. Throws
// NotFound or StorageError if they cannot be read. `curves`: has read those of an earlier state of the experiment.
Value document_of(const Source& source, CurveReader& curves);
Value document_of(const Source& source);

// Returns the document of an experiment that cannot be read.
Value unreadable(const std::string& name, const std::string& reason);

// Returns the indices of the trials that stand in the document, in order: all up to kMostTrials, else the best half of
// as many, with everything that those at `needed` are made of, and others at equal distances.
std::vector<std::size_t> sampled_trials(const std::vector<std::optional<double>>& losses,
                                        const std::vector<std::size_t>& needed, std::size_t most);

}  // namespace cadre::report
