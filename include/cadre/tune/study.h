/// \file
/// Ask and tell: searchers without a Tuner, for programs that run their trials themselves.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cadre/tune/tuner.h"
#include "cadre/value.h"

namespace cadre::tune {

/// A trial of a Study.
struct Suggestion {
  TrialIndex trial = 0;  ///< its number, from 0
  Config config = {};    ///< its config
};

/// Suggests configs and learns from what the program observes with them:
///
///     tune::Study study({{"lr", tune::loguniform(1e-5, 1)}},
///                       {.metric = tune::minimize("loss"), .searcher = tune::TPE{}});
///     for (int i = 0; i < 100; ++i) {
///       const auto [trial, config] = *study.suggest();
///       study.observe(trial, {{"loss", train(config)}});
///     }
///
/// Several trials may be open at a time; each is observed once. Any thread may call a study, one call at a time.
///
/// A study in a directory outlives its process: each change is on the disk when the call returns, and after an error of
/// the disk (StorageError) neither the file nor the study has changed. One process at a time has it open; another one
/// waits for it, at most a minute. The program `cadre` opens such studies too, to suggest and observe, and reads them
/// as it reads experiments: cadre ls, show, best, importance, export and plot --pareto.
class Study {
 public:
  /// Checks the options as a Tuner does and throws InvalidArgument that names every error. Of the TuneConfig it uses
  /// searcher, metric, mode, seed, points_to_evaluate and num_samples, which does not limit suggestions.
  Study(Space space, TuneConfig config);
  /// Opens the study in a directory, or begins it there. Throws InvalidArgument that lists the differences if it was
  /// begun with other options, StorageError if it cannot be read or written.
  Study(const std::filesystem::path& directory, Space space, TuneConfig config);
  /// Opens the study in a directory with the options that it was begun with. Throws NotFound if there is none,
  /// InvalidArgument if this program lacks its searcher, StorageError if it cannot be read.
  static Study open(const std::filesystem::path& directory);
  /// Returns true if there is a study in the directory.
  static bool exists(const std::filesystem::path& directory);
  ~Study();
  Study(Study&&) noexcept;             ///< moves; the other one may only be destroyed
  Study& operator=(Study&&) noexcept;  ///< moves; the other one may only be destroyed

  /// Makes a trial and returns it. Empty: the searcher waits for the end of an open trial. Throws Error if a function
  /// of the space does; there is then no new trial.
  std::optional<Suggestion> suggest();
  /// Adds a trial with a config that the program chose itself, or has observed before. Throws InvalidArgument if a
  /// value is not in its domain.
  Suggestion add(const Config& config);
  /// Tells an intermediate result of an open trial. Throws NotFound if there is no such open trial.
  void report(TrialIndex trial, const Metrics& result);
  /// Ends an open trial with its result. Throws NotFound if there is no such open trial.
  void observe(TrialIndex trial, const Metrics& result);
  /// Ends an open trial that has failed or was stopped early, with its last reported result. Throws NotFound if there
  /// is no such open trial.
  void end(TrialIndex trial, TrialStatus status);

  const Objective& metric() const;                     ///< returns the metric, with its direction; may have no name
  std::int64_t num_trials() const;                     ///< returns the number of trials, open ones too
  const std::vector<TrialIndex>& open_trials() const;  ///< returns the open trials, ascending
  const Config& config(TrialIndex trial) const;        ///< returns a trial's config; the trial must exist
  Metrics result(TrialIndex trial) const;              ///< returns a trial's last result, or none; the trial must exist
  /// Returns the ended trial with the best value of the metric, among equals the first; empty: there is none.
  std::optional<TrialIndex> best() const;
  /// Returns the results of all trials so far, for importances(), Pareto fronts and tables; open trials are running.
  /// ResultGrid::from_directory reads those of a study in a directory, also while another process has it open.
  ResultGrid results() const;

 private:
  struct State;
  explicit Study(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace cadre::tune
