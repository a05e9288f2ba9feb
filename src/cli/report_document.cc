#include "cli/report_document.h"

#include <algorithm>
#include <chrono>
#include <span>
#include <string>

#include "base/file.h"
#include "cadre/error.h"
#include "cli/columns.h"
#include "cli/find.h"
#include "cli/option_texts.h"
#include "cli/progress.h"
#include "report/document.h"
#include "train/read_timeline.h"

namespace cadre::cli {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t kMostErrorBytes = 4000;
constexpr char kErrorFile[] = "error.txt";

// Returns the last lines of the file with a trial's failures; empty if there is none, as in a copy of a published
// experiment.
std::string last_errors(const tune::Result& trial) {
  try {
    const auto file = base::ReadableFile::open(trial.path / kErrorFile, base::ReadableFile::Links::refuse);
    if (!file) return {};
    const std::uint64_t size = file->size();
    const std::uint64_t begin = size > kMostErrorBytes ? size - kMostErrorBytes : 0;
    std::string text(size - begin, '\0');
    text.resize(file->read(begin, std::as_writable_bytes(std::span(text))));
    return begin == 0 ? text : text.substr(std::min(text.find('\n') + 1, text.size()));
  } catch (const StorageError&) {
    return {};
  }
}

report::Source source_of(const tune::ResultGrid& results) {
  const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
  return {.results = results,
          .parameters = parameters_of(results),
          .options = option_texts(results.summary().options),
          .place = place_text,
          .last_errors = last_errors,
          .read = now.count()};
}

}  // namespace

Value report_document(const tune::ResultGrid& results, report::CurveReader& curves) {
  report::Source source = source_of(results);
  source.progress = progress_text(progress_of(results), results.summary().state);
  return report::document_of(source, curves);
}

Value report_document(const tune::ResultGrid& results) {
  report::CurveReader curves;
  return report_document(results, curves);
}

Value report_document(const TrainingRun& run, const fs::path& directory) {
  const tune::ResultGrid results = as_experiment(run);
  report::Source source = source_of(results);
  source.run = report::RunParts{.status = run.status,
                                .attempts = run.result.attempts,
                                .checkpoints = run.result.best_checkpoints,
                                .timeline = train::read_timeline(directory)};
  return report::document_of(source);
}

}  // namespace cadre::cli
