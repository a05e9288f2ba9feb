// All ways in which checkpoints of a class trainable are triggered: a frequency, the end of a trial, the trainable
// itself, two callbacks (one counts batches, one receives a notice that the machine will be taken away), and the pauses
// of Population Based Training. The trials train a digit classifier on MNIST.
#include <cadre/torch.h>
#include <cadre/tune.h>
#include <torch/torch.h>

#include <csignal>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <set>

#include "datasets/mnist.h"
#include "models/lenet.h"
#include "program/experiment_program.h"

using cadre::Config;
using cadre::Metrics;
using cadre::Value;
using datasets::Mnist;
using datasets::MnistPart;
namespace tune = cadre::tune;

constexpr std::int64_t batch_size = 64;
constexpr std::int64_t batches_per_iteration = 5;
constexpr std::int64_t frequency = 5;  // iterations from one checkpoint to the next
constexpr const char* asked_by = "asked_by";

class DigitTrainable final : public tune::ClassTrainable {
 public:
  void setup(const Config& config) override {
    torch::manual_seed(tune::get_context().get_seed());
    const std::filesystem::path data_dir = config.get<std::string>("data_dir");
    train_set_ = std::make_unique<Mnist>(data_dir, MnistPart::train);
    test_set_ = std::make_unique<Mnist>(data_dir, MnistPart::test);
    reset_config(config);
  }

  Metrics step() override {
    model_->train();
    for (const torch::Tensor& indices : draw(*train_set_, batches_per_iteration)) {
      const Mnist::Batch batch = train_set_->at(indices);
      optimizer_.zero_grad();
      torch::nll_loss(model_(batch.images), batch.labels).backward();
      optimizer_.step();
    }
    const double accuracy = test();
    Metrics result{{"mean_accuracy", accuracy}, {"batches", batches_per_iteration}};
    if (accuracy > best_ + 0.1) {  // a gain that large is worth a checkpoint
      best_ = accuracy;
      result.set(tune::SHOULD_CHECKPOINT, true);
      result.set(asked_by, "the trainable");
    }
    return result;
  }

  void save_checkpoint(const std::filesystem::path& directory) override {
    cadre::save_state(directory / "checkpoint.pt", model_, optimizer_, training_iteration());
  }

  void load_checkpoint(const std::filesystem::path& directory) override {
    cadre::load_state(directory / "checkpoint.pt", model_, optimizer_);
    cadre::set_hyperparameters(optimizer_, get_config());  // explored values instead of the checkpoint's
    best_ = test();
  }

  // Applies a new config from Population Based Training: the same process continues with it, and loads a checkpoint
  // next.
  bool reset_config(const Config& config) override {
    cadre::set_hyperparameters(optimizer_, config);
    return true;
  }

 private:
  static std::vector<torch::Tensor> draw(const Mnist& examples, std::int64_t batches) {
    return torch::randperm(examples.size()).slice(0, 0, batches * batch_size).split(batch_size);
  }

  // Returns the accuracy on some test images, from 0 to 1.
  double test() {
    const torch::NoGradGuard no_grad;
    model_->eval();
    const Mnist::Batch batch = test_set_->at(torch::arange(1000));
    return model_(batch.images).argmax(1).eq(batch.labels).to(torch::kDouble).mean().item<double>();
  }

  models::LeNet model_;
  torch::optim::SGD optimizer_{model_->parameters(), torch::optim::SGDOptions(0.1)};
  std::unique_ptr<Mnist> train_set_;
  std::unique_ptr<Mnist> test_set_;
  double best_ = 0;
};

// A callback that asks for a checkpoint of a trial each time the trial has trained on another `each` batches. Its
// state, the number of batches per trial, survives a restore.
class SaveByBatches final : public tune::Callback {
 public:
  explicit SaveByBatches(std::int64_t each) : each_(each) {}

  void on_trial_result(std::int64_t, const tune::TrialList&, const tune::TrialInfo& trial, Metrics& result) override {
    std::int64_t& taken = taken_[trial.trial_id];
    const std::int64_t before = taken;
    taken += result.get<std::int64_t>("batches");
    if (taken / each_ == before / each_ || result.contains(tune::SHOULD_CHECKPOINT)) return;
    result.set(tune::SHOULD_CHECKPOINT, true);
    result.set(asked_by, "so many batches");
  }

  Value get_state() const override {
    cadre::Dict state;
    for (const auto& [trial, taken] : taken_) state.emplace_back(trial, taken);
    return state;
  }
  void set_state(const Value& state) override {
    for (const auto& [trial, taken] : state.dict()) taken_[trial] = taken.get<std::int64_t>();
  }
  std::string name() const override { return "SaveByBatches"; }

 private:
  std::int64_t each_;
  std::map<std::string, std::int64_t> taken_;
};

// A callback that simulates preemption in a cluster: a notice that the machine will be taken away, and soon afterwards
// SIGTERM. After the notice the next result of each trial is saved; then the experiment can be ended without losing
// anything.
class PreemptionNotice final : public tune::Callback {
 public:
  explicit PreemptionNotice(std::int64_t after_results) : after_results_(after_results) {}

  void on_trial_result(std::int64_t, const tune::TrialList&, const tune::TrialInfo& trial, Metrics& result) override {
    if (++results_ < after_results_ || served_) return;
    awaited_.insert(trial.trial_id);
    result.set(tune::SHOULD_CHECKPOINT, true);
    result.set(asked_by, "the preemption notice");
  }

  void on_trial_save(std::int64_t, const tune::TrialList& trials, const tune::TrialInfo& trial) override {
    if (served_ || !awaited_.contains(trial.trial_id)) return;
    saved_.insert(trial.trial_id);
    for (std::size_t i = 0; i < trials.size(); ++i) {
      if (trials[i].status == tune::TrialStatus::running && !saved_.contains(trials[i].trial_id)) return;
    }
    served_ = true;
    std::raise(SIGTERM);
  }

  bool served() const { return served_; }

  Value get_state() const override { return cadre::Dict{{"results", results_}, {"served", served_}}; }
  void set_state(const Value& state) override {
    results_ = Config(state).get<std::int64_t>("results");
    served_ = Config(state).get<bool>("served");
  }
  std::string name() const override { return "PreemptionNotice"; }

 private:
  std::int64_t after_results_;
  std::int64_t results_ = 0;
  bool served_ = false;
  std::set<std::string> awaited_;
  std::set<std::string> saved_;
};

tune::TunerOptions make_options(const examples::ExperimentFlags& flags) {
  const tune::PopulationBasedTraining pbt{.time_attr = tune::TRAINING_ITERATION,
                                          .perturbation_interval = 4,
                                          .hyperparam_mutations = {{"lr", tune::loguniform(1e-3, 1)}}};
  return {.param_space = {{"lr", tune::loguniform(1e-3, 1)},
                          {"data_dir", std::filesystem::absolute(flags.data_dir).string()}},
          .tune_config = {.metric = tune::maximize("mean_accuracy"),
                          .num_samples = flags.num_samples,
                          .scheduler = pbt,
                          .seed = flags.seed,
                          .parking = {.max_workers = 0}},  // so that trials are saved while they wait for their turn
          .run_config = {.name = flags.name,
                         .storage_path = flags.storage_path,
                         .stop = {{tune::TRAINING_ITERATION, flags.max_iterations}},
                         .checkpoint_config = {.checkpoint_frequency = frequency, .checkpoint_at_end = true}}};
}

tune::ResultGrid train(const examples::ExperimentFlags& flags) {
  const auto notice = std::make_shared<PreemptionNotice>(flags.num_samples * flags.max_iterations / 2);
  const tune::Callbacks callbacks{std::make_shared<SaveByBatches>(30), notice};
  const tune::RestoreOptions with_callbacks{.callbacks = callbacks};
  tune::TunerOptions options = make_options(flags);
  options.run_config.callbacks = callbacks;
  tune::Tuner tuner = flags.restore ? tune::Tuner::restore(flags.experiment_path(), with_callbacks)
                                    : tune::Tuner(tune::trainable<DigitTrainable>(), options);
  try {
    return tuner.fit();
  } catch (const cadre::Interrupted&) {
    if (!notice->served()) throw;  // it was Ctrl-C
  }
  std::cout << "\nThe machine was taken away, and is there again: the experiment goes on.\n\n";
  return tune::Tuner::restore(flags.experiment_path(), with_callbacks).fit();
}

// Returns the reason for this result's checkpoint.
std::string reason(const Metrics& result, std::int64_t max_iterations) {
  if (result.contains(asked_by)) return result.get<std::string>(asked_by);
  const auto iteration = result.get<std::int64_t>(tune::TRAINING_ITERATION);
  if (iteration % frequency == 0) return "the frequency";
  return iteration == max_iterations ? "the end" : "Population Based Training";
}

int run(const examples::ExperimentFlags& flags) {
  for (const MnistPart part : {MnistPart::train, MnistPart::test}) Mnist(flags.data_dir, part);
  const tune::ResultGrid results = train(flags);
  for (const tune::Result& trial : results) {
    std::map<std::int64_t, std::string> reasons;
    for (const auto& [checkpoint, metrics] : trial.best_checkpoints)
      reasons[metrics.get<std::int64_t>(tune::TRAINING_ITERATION)] = reason(metrics, flags.max_iterations);
    std::cout << "\nTrial " << trial.trial_id << ", " << trial.num_results() << " results, " << reasons.size()
              << " checkpoints:\n";
    for (const auto& [iteration, why] : reasons) std::cout << "  iteration " << iteration << ": " << why << "\n";
  }
  return results.num_errors() == 0 ? 0 : 1;
}

int main(int argc, char** argv) {
  cadre::init(argc, argv);

  examples::ExperimentFlags flags{.num_samples = 3, .max_iterations = 16, .name = "checkpoint_mechanisms"};
  examples::CommandLine command_line("Every way in which a trainable class comes to its checkpoints");
  examples::add_flags(command_line, flags);
  if (const auto exit_code = command_line.parse(argc, argv)) return *exit_code;
  return examples::run_program("checkpoint_mechanisms", flags, [&] { return run(flags); });
}
