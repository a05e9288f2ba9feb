// Population Based Training on MNIST: four trials train the same small network with different learning rates and
// momenta. Every five iterations the worst trial gives up: it goes on from the best one's checkpoint with that trial's
// hyper-parameters, slightly changed. The same program as Ray Tune's example pbt_convnet_function_example.py.
#include <cadre/torch.h>
#include <cadre/tune.h>
#include <torch/torch.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>

#include "datasets/mnist.h"
#include "program/experiment_program.h"

using cadre::Config;
using cadre::Metrics;
using datasets::Mnist;
using datasets::MnistPart;
namespace tune = cadre::tune;

constexpr std::int64_t batch_size = 64;
constexpr std::int64_t train_batches = 9;  // of each iteration
constexpr std::int64_t test_batches = 5;

struct ConvNetImpl : torch::nn::Module {
  // [N, 1, 28, 28] images to [N, 10] logarithms of the digits' probabilities
  torch::Tensor forward(torch::Tensor images) {
    const torch::Tensor features = torch::relu(torch::max_pool2d(conv1(images), 3));
    return torch::log_softmax(fc(features.flatten(1)), 1);
  }

  torch::nn::Conv2d conv1 = register_module("conv1", torch::nn::Conv2d(1, 3, 3));
  torch::nn::Linear fc = register_module("fc", torch::nn::Linear(192, 10));
};
TORCH_MODULE(ConvNet);

// The indices of `count` batches of different examples, drawn at random.
std::vector<torch::Tensor> draw_batches(const Mnist& examples, std::int64_t count) {
  return torch::randperm(examples.size()).slice(0, 0, count * batch_size).split(batch_size);
}

void train(ConvNet& model, torch::optim::Optimizer& optimizer, const Mnist& examples) {
  model->train();
  for (const torch::Tensor& indices : draw_batches(examples, train_batches)) {
    const Mnist::Batch batch = examples.at(indices);
    optimizer.zero_grad();
    torch::nll_loss(model(batch.images), batch.labels).backward();
    optimizer.step();
  }
}

// The share of right answers.
double test(ConvNet& model, const Mnist& examples) {
  const torch::NoGradGuard no_grad;
  model->eval();
  std::int64_t right = 0;
  for (const torch::Tensor& indices : draw_batches(examples, test_batches)) {
    const Mnist::Batch batch = examples.at(indices);
    right += model(batch.images).argmax(1).eq(batch.labels).sum().item<std::int64_t>();
  }
  return static_cast<double>(right) / static_cast<double>(test_batches * batch_size);
}

// One trial. Runs in a process of its own, until the scheduler or the stop criterion ends it inside report().
void train_convnet(const Config& config) {
  torch::manual_seed(tune::get_context().get_seed());
  const std::filesystem::path data_dir = config.get<std::string>("data_dir");
  const Mnist train_set(data_dir, MnistPart::train);
  const Mnist test_set(data_dir, MnistPart::test);

  ConvNet model;
  torch::optim::SGD optimizer(
      model->parameters(), torch::optim::SGDOptions(config.get<double>("lr")).momentum(config.get<double>("momentum")));

  std::int64_t step = 1;
  if (const auto checkpoint = tune::get_checkpoint()) {
    // This trial's own checkpoint after an interruption, or another trial's that does better.
    step = cadre::load_state(checkpoint->path() / "checkpoint.pt", model, optimizer) + 1;
    cadre::set_hyperparameters(optimizer, config);  // the explored values instead of the checkpoint's
  }
  const auto checkpoint_interval = config.get<std::int64_t>("checkpoint_interval");
  for (;; ++step) {
    train(model, optimizer, train_set);
    const Metrics metrics{{"mean_accuracy", test(model, test_set)},
                          {"lr", config.get<double>("lr")},
                          {"momentum", config.get<double>("momentum")}};
    if (step % checkpoint_interval != 0) {
      tune::report(metrics);
    } else {
      tune::report(metrics, [&](const std::filesystem::path& directory) {
        cadre::save_state(directory / "checkpoint.pt", model, optimizer, step);
      });
    }
  }
}

struct Flags : examples::ExperimentFlags {
  bool synch = false;
  std::string replay = {};
  double cpus_per_trial = 1;
};

void add_flags(CLI::App& app, Flags& flags) {
  examples::add_flags(app, flags);
  app.add_flag("--synch", flags.synch, "trials wait for each other every 5 iterations");
  app.add_option("--replay", flags.replay,
                 "train one trial with the schedule of a policy file, pbt_policy_<trial id>.txt of an experiment");
  app.add_option("--cpus-per-trial", flags.cpus_per_trial, "more trials than CPUs wait for their turn");
}

tune::TunerOptions make_options(const Flags& flags) {
  const tune::PopulationBasedTraining pbt{
      .time_attr = "training_iteration",
      .metric = "mean_accuracy",
      .mode = cadre::Mode::max,
      .perturbation_interval = 5,
      .hyperparam_mutations = {{"lr", tune::uniform(0.0001, 1)}, {"momentum", {0.8, 0.9, 0.99}}},
      .synch = flags.synch};
  return tune::TunerOptions{
      .param_space = {{"lr", tune::uniform(0.001, 1)},
                      {"momentum", tune::uniform(0.001, 1)},
                      {"checkpoint_interval", 5},
                      {"data_dir", std::filesystem::absolute(flags.data_dir).string()}},
      .tune_config = {.metric = "mean_accuracy",
                      .mode = cadre::Mode::max,
                      .num_samples = flags.num_samples,
                      .scheduler = pbt,
                      .seed = flags.seed},
      .run_config = {.name = flags.name,
                     .storage_path = flags.storage_path,
                     .stop = {{"mean_accuracy", 0.96}, {"training_iteration", flags.max_iterations}},
                     .checkpoint_config = {.num_to_keep = 4, .checkpoint_score_attribute = "mean_accuracy"}}};
}

// The configs that Population Based Training has found for one of its trials, for a trial of its own.
tune::TunerOptions make_replay_options(const Flags& flags) {
  tune::TunerOptions options = make_options(flags);
  options.tune_config.num_samples = 1;
  options.tune_config.scheduler = tune::PopulationBasedTrainingReplay{.policy_file = flags.replay};
  return options;
}

tune::Tuner make_tuner(const Flags& flags) {
  if (flags.restore) return tune::Tuner::restore(flags.experiment_path());
  // A missing or damaged file is better told now than by every trial.
  for (const MnistPart part : {MnistPart::train, MnistPart::test}) Mnist(flags.data_dir, part);
  return {tune::with_resources(tune::trainable<train_convnet>(), {.cpus = flags.cpus_per_trial}),
          flags.replay.empty() ? make_options(flags) : make_replay_options(flags)};
}

int run(const Flags& flags) {
  tune::Tuner tuner = make_tuner(flags);
  const tune::ResultGrid results = tuner.fit();

  const tune::Result& best = results.get_best_result();
  const std::filesystem::path picture = results.experiment_path() / "mean_accuracy.svg";
  tune::write_svg(results, picture, {.metrics = {"mean_accuracy"}});
  std::cout << "\nBest trial " << best.trial_id << ": mean_accuracy " << best.metrics.get<double>("mean_accuracy")
            << " at iteration " << best.metrics.get<std::int64_t>("training_iteration")
            << "\n  config:    " << cadre::to_json(best.config.dict()) << "\n  directory: " << best.path.string()
            << "\n  picture:   " << picture.string() << "\n";
  return results.num_errors() == 0 ? 0 : 1;
}

int main(int argc, char** argv) {
  cadre::init(argc, argv);  // first: from here on, the workers of all trials are forked

  Flags flags{{.num_samples = 4, .max_iterations = 50, .name = "pbt_mnist"}};
  CLI::App app("Population Based Training of a small convolutional network on MNIST");
  add_flags(app, flags);
  CLI11_PARSE(app, argc, argv);
  return examples::run_program("pbt_mnist", flags, [&] { return run(flags); });
}
