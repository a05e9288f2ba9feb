// The history of each trial, from the rows of an experiment's store alone. Unlike a replay it needs no trainable and no
// function of the program, so any program can read an experiment.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cadre/tune/result.h"
#include "store/read_store.h"
#include "tune/running_time.h"

namespace cadre::tune {

// A committed checkpoint, by its trial's index and its number in that trial.
struct CheckpointName {
  std::size_t trial = 0;
  std::size_t number = 0;
  auto operator<=>(const CheckpointName&) const = default;
};

struct TrialHistory {
  std::vector<std::int64_t> results = {};  // sequence numbers of the results that count, without repeated steps
  std::int64_t last_result = 0;            // sequence number of the last one of its lineage; 0: none
  Config drawn_config = {};
  Config config = {};
  std::vector<ExploitRecord> exploits = {};      // directories and iterations are filled in later, from the results
  std::vector<std::size_t> donors = {};          // trial index of the donor, for each exploit
  std::vector<std::int64_t> before = {};         // the trial's last result before each exploit; 0: none
  std::vector<std::int64_t> donor_results = {};  // the result with the donor's checkpoint, for each exploit
  std::int64_t failures = 0;
  std::optional<CheckpointName> latest_checkpoint = {};

  struct Checkpoint {
    std::int64_t result = 0;                    // sequence number of the result reported with it
    std::optional<CheckpointName> parent = {};  // the previous checkpoint of its lineage
  };
  std::vector<Checkpoint> checkpoints = {};  // all that were ever committed, by number
};

// Builds the histories from the rows of a store. Rows must be added in order, after the trials that they name.
class TrialHistories {
 public:
  // Adds a trial. Throws StorageError if it is not the next one.
  void add(const store::TrialRow& row);
  // Sets the checkpoints that exist now.
  void set_existing(std::vector<CheckpointName> checkpoints);
  void add(const store::ResultRow& row);
  void add(const store::EventRow& row);
  void add(const store::DecisionRow& row);

  const std::vector<TrialHistory>& trials() const { return histories_; }
  const std::vector<CheckpointName>& existing_checkpoints() const { return existing_; }  // by trial, oldest first
  const RunningTime& running_time() const { return running_time_; }
  // Returns the name of a checkpoint by its directory. Throws StorageError if it belongs to no trial.
  CheckpointName name_of(const std::string& directory) const;
  // Returns why a stopper has stopped all trials; empty: none has.
  const std::string& stop_reason() const { return stop_reason_; }
  double first_time() const { return first_time_; }
  double last_time() const { return last_time_; }

 private:
  // The latest worker of a trial; its reports count while `runs`.
  struct Worker {
    std::int64_t attempt = 0;
    bool runs = false;
  };
  TrialHistory& history_of(std::int64_t trial);
  void record_exploit(std::size_t trial, const Value& data);
  void lose_latest(TrialHistory& history) const;
  void advance_to(double time);

  std::map<std::string, std::size_t, std::less<>> by_directory_ = {};
  std::vector<TrialHistory> histories_ = {};
  std::vector<Worker> workers_ = {};
  std::vector<CheckpointName> existing_ = {};
  RunningTime running_time_ = {};
  std::string stop_reason_ = {};
  double first_time_ = 0;
  double last_time_ = 0;
};

}  // namespace cadre::tune
