// Population Based Training of trials that train data-parallel: each trial trains one network in two processes. Their
// report is the trial's result, and their checkpoint is the trial's checkpoint. After an exploit, both processes of a
// trial continue from the other trial's checkpoint.
#include <cadre/train_torch.h>
#include <cadre/tune.h>
#include <torch/torch.h>

#include <filesystem>
#include <iostream>

#include "datasets/mnist_dataset.h"
#include "models/convnet.h"
#include "program/experiment_program.h"

using cadre::Config;
using cadre::fn;
using cadre::Metrics;
using datasets::Mnist;
using datasets::MnistDataset;
using datasets::MnistPart;
using models::ConvNet;
namespace train = cadre::train;
namespace tune = cadre::tune;

constexpr std::int64_t num_workers = 2;         // per trial
constexpr std::int64_t examples_a_step = 1024;  // over all workers
constexpr std::int64_t test_examples = 512;

// Returns the accuracy over the examples of all workers, from 0 to 1.
double test(train::PreparedModel<models::ConvNetImpl>& model, train::DataLoader<MnistDataset>& loader) {
  const torch::NoGradGuard no_grad;
  model.eval();
  train::MeanMetric accuracy;
  for (auto& batch : loader) accuracy.update(model(batch.data).argmax(1).eq(batch.target).to(torch::kFloat));
  return accuracy.compute();
}

// Runs in every worker of a trial, until the experiment stops it inside report().
void train_convnet(const Config& config) {
  torch::manual_seed(0);
  const std::filesystem::path data_dir = config.get<std::string>("data_dir");
  auto model = train::prepare_model(ConvNet());
  torch::optim::SGD optimizer(
      model.parameters(), torch::optim::SGDOptions(config.get<double>("lr")).momentum(config.get<double>("momentum")));
  auto train_loader =
      train::prepare_data_loader(MnistDataset(Mnist(data_dir, MnistPart::train)), {.batch_size = 32, .shuffle = true});
  auto test_loader = train::prepare_data_loader(MnistDataset(Mnist(data_dir, MnistPart::test), test_examples),
                                                {.batch_size = 64, .remainder = train::Remainder::keep});

  std::int64_t step = 1;
  if (const auto checkpoint = train::get_checkpoint()) {  // of this trial, or of one that does better
    step = cadre::load_state(checkpoint->path() / "model.pt", model.module(), optimizer) + 1;
    cadre::set_hyperparameters(optimizer, config);  // the explored values instead of the checkpoint's
  }
  for (;; ++step) {
    model.train();
    train_loader.set_epoch(static_cast<std::uint64_t>(step));  // other examples in each step
    std::int64_t left = examples_a_step / num_workers;
    for (auto& batch : train_loader) {
      model.zero_grad();
      torch::nn::functional::cross_entropy(model(batch.data), batch.target).backward();
      optimizer.step();
      if ((left -= batch.target.size(0)) <= 0) break;
    }
    const Metrics metrics{{"mean_accuracy", test(model, test_loader)}, {"lr", config.get<double>("lr")}};
    if (train::get_context().get_world_rank() != 0) {
      train::report(metrics);
    } else {
      train::report(metrics, [&](const std::filesystem::path& directory) {
        cadre::save_state(directory / "model.pt", model.module(), optimizer, step);
      });
    }
  }
}

// Runs one trial.
void train_in_group(const Config& config) {
  train::TorchTrainer(fn<train_convnet>, {.train_loop_config = config, .scaling_config = {.num_workers = num_workers}})
      .fit();
}

// Returns the trainable with its resources: the trial itself needs no CPU while its workers train, and each worker
// needs one.
tune::Trainable make_trainable() {
  cadre::PlacementGroup group{.bundles = {{.cpus = 0}}};
  group.bundles.resize(1 + num_workers, {.cpus = 1});
  return tune::with_resources(fn<train_in_group>, group);
}

tune::TunerOptions make_options(const examples::ExperimentFlags& flags) {
  const tune::PopulationBasedTraining pbt{
      .time_attr = "training_iteration",
      .perturbation_interval = 4,
      .hyperparam_mutations = {{"lr", tune::loguniform(0.0001, 1)}, {"momentum", {0.8, 0.9, 0.99}}}};
  return tune::TunerOptions{.param_space = {{"lr", tune::loguniform(0.0001, 1)},
                                            {"momentum", 0.9},
                                            {"data_dir", std::filesystem::absolute(flags.data_dir).string()}},
                            .tune_config = {.metric = tune::maximize("mean_accuracy"),
                                            .num_samples = flags.num_samples,
                                            .scheduler = pbt,
                                            .seed = flags.seed},
                            .run_config = {.name = flags.name,
                                           .storage_path = flags.storage_path,
                                           .stop = {{"training_iteration", flags.max_iterations}},
                                           .checkpoint_config = {.num_to_keep = 2}}};
}

int run(const examples::ExperimentFlags& flags) {
  Mnist(flags.data_dir, MnistPart::train);  // reports a missing data set before anything runs
  tune::Tuner tuner = flags.restore ? tune::Tuner::restore(flags.experiment_path())
                                    : tune::Tuner(make_trainable(), make_options(flags));
  const tune::ResultGrid results = tuner.fit();
  const tune::Result& best = results.get_best_result();
  std::cout << "\nBest trial " << best.trial_id << ": accuracy " << best.metrics.get<double>("mean_accuracy")
            << " with lr " << best.config.get<double>("lr") << "\n";
  return results.num_errors() == 0 ? 0 : 1;
}

int main(int argc, char** argv) {
  cadre::init(argc, argv);  // first: from here on, the workers of all trials are forked

  examples::ExperimentFlags flags{.max_iterations = 16, .name = "pbt_distributed"};
  examples::CommandLine command_line("Population Based Training of trials that train in several processes");
  examples::add_flags(command_line, flags);
  if (const auto exit_code = command_line.parse(argc, argv)) return *exit_code;
  return examples::run_program("pbt_distributed", flags, [&] { return run(flags); });
}
