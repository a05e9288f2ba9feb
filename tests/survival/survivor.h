// An experiment to interrupt: small, quick, and the same again and again, so that nothing that is lost can hide.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "cadre/tune.h"

namespace cadre::survival {

struct Setting {
  bool synch = true;  // then the outcome does not depend on what happens on the way
  std::int64_t population = 4;
  std::int64_t steps = 24;
  std::int64_t interval = 4;             // of perturbation
  std::int64_t checkpoint_interval = 1;  // divides the other one
  bool copied = false;                   // checkpoints are directories of the trial's own, and not Cadre's
  std::int64_t num_to_keep = 1;
  std::int64_t max_failures = -1;
  bool verbose = false;
  bool is_class = false;      // it saves when it is told to, and takes over configs
  bool has_programs = false;  // each worker starts a program that goes on for ever

  std::string text() const;  // for messages
};

// Options of an experiment that is to live in `experiment`, whose trials learn from an object.
tune::TunerOptions options_of(const Setting& setting, const std::filesystem::path& experiment, const ObjectRef& table);
ObjectRef put_table();

tune::Trainable trainable_of(const Setting& setting);

// Where the experiment is published: much faster than anybody would.
PublishConfig publish_config();

// One that counts results, and remembers how many they are.
tune::Callbacks callbacks();

// The trainable, and below the same as a class. Its whole state is in its checkpoints; it learns by its lr alone. Each
// report that has returned leaves the line "<attempt> <step>" in the file "witness" of its trial.
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
// What a checkpoint of `survivor` holds; empty where it is not whole.
std::optional<State> read_state(const std::filesystem::path& checkpoint);

struct Witness {
  std::int64_t attempt = 0;
  std::int64_t step = 0;
  auto operator<=>(const Witness&) const = default;
};
std::vector<Witness> read_witnesses(const std::filesystem::path& trial);
std::int64_t last_step(const std::filesystem::path& trial);  // of the last witness; 0: none

}  // namespace cadre::survival
