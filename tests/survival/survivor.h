// An experiment to interrupt: small, quick and reproducible, so that every loss is noticed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "cadre/tune.h"

namespace cadre::survival {

struct Setting {
  bool synch = true;  // the outcome then does not depend on interruptions
  std::int64_t population = 4;
  std::int64_t steps = 24;
  std::int64_t interval = 4;             // perturbation interval
  std::int64_t checkpoint_interval = 1;  // divides `interval`
  bool copied = false;                   // checkpoints are directories of the trial's own, and not Cadre's
  std::int64_t num_to_keep = 1;
  std::int64_t max_failures = -1;
  bool verbose = false;
  bool is_class = false;      // saves on request, and takes over configs
  bool has_programs = false;  // each worker starts a program that never ends

  std::string text() const;  // for messages
};

// Returns options of an experiment in the directory `experiment`, whose trials learn from an object.
tune::TunerOptions options_of(const Setting& setting, const std::filesystem::path& experiment, const ObjectRef& table);
ObjectRef put_table();

tune::Trainable trainable_of(const Setting& setting);

// Publishes much more often than users would.
PublishConfig publish_config();

// Returns a callback that counts results; the count is its state.
tune::Callbacks callbacks();

// The trainable, and below the same as a class. Its whole state is in its checkpoints; only its lr determines how it
// learns. Each report that has returned appends a line "<attempt> <step>" to the file "witness" of its trial.
void survivor(const Config& config);
class SurvivorClass final : public tune::ClassTrainable {
 public:
  void setup(const Config& config) override;
  Metrics step() override;
  void save_checkpoint(const std::filesystem::path& directory) override;
  void load_checkpoint(const std::filesystem::path& directory) override;
  bool reset_config(const Config&) override { return true; }

 private:
  std::int64_t step_ = 0;
  double score_ = 0;
  double slowness_ = 0;
};

struct State {
  std::int64_t step = 0;
  double score = 0;
};
// Returns the content of a checkpoint of `survivor`; empty if it is incomplete.
std::optional<State> read_state(const std::filesystem::path& checkpoint);

struct Witness {
  std::int64_t attempt = 0;
  std::int64_t step = 0;
  auto operator<=>(const Witness&) const = default;
};
std::vector<Witness> read_witnesses(const std::filesystem::path& trial);
// Returns true if two processes of the trial ran at the same time, which is seen on nodes, whose processes have
// kClaimVariable set.
inline constexpr const char* kClaimVariable = "CADRE_TEST_CLAIM";
// Names the folder in which trials bear witness, if not in their directories, which may be a node's own.
inline constexpr const char* kWitnessesVariable = "CADRE_TEST_WITNESSES";
bool has_run_twice(const std::filesystem::path& trial);
std::int64_t last_step(const std::filesystem::path& trial);  // step of the last witness; 0: none

}  // namespace cadre::survival
