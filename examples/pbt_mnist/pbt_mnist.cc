// Population Based Training on MNIST: eight trials train the same small network with different learning rates and
// momenta. Every three iterations each of the worst two trials continues from the checkpoint of one of the best two,
// with that trial's hyper-parameters changed. --compare then trains as many trials by random search, and replays the
// schedule that led to the best trial. After Ray Tune's example pbt_convnet_function_example.py.
#include <cadre/torch.h>
#include <cadre/tune.h>
#include <torch/torch.h>

#include <filesystem>
#include <iostream>
#include <optional>
#include <vector>

#include "datasets/mnist.h"
#include "program/experiment_program.h"

using cadre::Config;
using cadre::fn;
using cadre::Metrics;
using datasets::Mnist;
using datasets::MnistPart;
namespace tune = cadre::tune;

constexpr std::int64_t batch_size = 16;
constexpr std::int64_t train_batches = 150;  // per iteration
constexpr std::int64_t test_batch_size = 250;

struct ConvNetImpl : torch::nn::Module {
  // Takes images [N, 1, 28, 28], returns logarithms of the digits' probabilities [N, 10].
  torch::Tensor forward(torch::Tensor images) {
    const torch::Tensor features = torch::relu(torch::max_pool2d(conv1(images), 3));
    return torch::log_softmax(fc(features.flatten(1)), 1);
  }

  torch::nn::Conv2d conv1 = register_module("conv1", torch::nn::Conv2d(1, 3, 3));
  torch::nn::Linear fc = register_module("fc", torch::nn::Linear(192, 10));
};
TORCH_MODULE(ConvNet);

// Returns the images at these indices, on the device of the model.
Mnist::Batch batch_on_device(const ConvNet& model, const Mnist& images, const torch::Tensor& indices) {
  const torch::Device device = model->fc->weight.device();
  const Mnist::Batch batch = images.at(indices);
  return {batch.images.to(device), batch.labels.to(device)};
}

// Runs one iteration: batches of distinct images, drawn at random.
void train(ConvNet& model, torch::optim::Optimizer& optimizer, const Mnist& images) {
  model->train();
  const torch::Tensor drawn = torch::randperm(images.size()).slice(0, 0, train_batches * batch_size);
  for (const torch::Tensor& indices : drawn.split(batch_size)) {
    const Mnist::Batch batch = batch_on_device(model, images, indices);
    optimizer.zero_grad();
    torch::nll_loss(model(batch.images), batch.labels).backward();
    optimizer.step();
  }
}

// Returns the accuracy on all images, from 0 to 1.
double test(ConvNet& model, const Mnist& images) {
  const torch::NoGradGuard no_grad;
  model->eval();
  std::int64_t right = 0;
  for (const torch::Tensor& indices : torch::arange(images.size()).split(test_batch_size)) {
    const Mnist::Batch batch = batch_on_device(model, images, indices);
    right += model(batch.images).argmax(1).eq(batch.labels).sum().item<std::int64_t>();
  }
  return static_cast<double>(right) / static_cast<double>(images.size());
}

// All images. They are opened once: the processes of all trials are forked from one that has opened them.
struct Images {
  Mnist train;
  Mnist test;
};
std::filesystem::path data_dir;
std::optional<Images> images;

void open_images() { images = Images{Mnist(data_dir, MnistPart::train), Mnist(data_dir, MnistPart::test)}; }

// Runs one trial in its own process, until the scheduler or the stop criterion ends it inside report().
void train_convnet(const Config& config) {
  torch::manual_seed(tune::get_context().get_seed());
  ConvNet model;
  if (torch::cuda::is_available()) model->to(torch::kCUDA);  // a trial sees only the GPUs that it has
  torch::optim::SGD optimizer(
      model->parameters(), torch::optim::SGDOptions(config.get<double>("lr")).momentum(config.get<double>("momentum")));

  std::int64_t step = 1;
  if (const auto checkpoint = tune::get_checkpoint()) {
    // This trial's own checkpoint after an interruption, or another trial's that does better.
    step = cadre::load_state(checkpoint->path() / "checkpoint.pt", model, optimizer) + 1;
    cadre::set_hyperparameters(optimizer, config);  // the explored values instead of the checkpoint's
  }
  for (;; ++step) {
    torch::manual_seed(tune::get_context().get_seed());  // per iteration: an interruption does not change results
    train(model, optimizer, images->train);
    const double accuracy = test(model, images->test);
    const Metrics metrics{{"mean_accuracy", accuracy},
                          {"error", 1 - accuracy},
                          {"lr", config.get<double>("lr")},
                          {"momentum", config.get<double>("momentum")}};
    tune::report(metrics, [&](const std::filesystem::path& directory) {
      cadre::save_state(directory / "checkpoint.pt", model, optimizer, step);
    });
  }
}

struct Flags : examples::ExperimentFlags {
  std::string scheduler = "pbt";
  bool synch = false;
  bool compare = false;
  std::string replay = {};
  double cpus_per_trial = 1;
  double gpus_per_trial = 0;
};

void add_flags(examples::CommandLine& command_line, Flags& flags) {
  examples::add_flags(command_line, flags);
  command_line.choice("--scheduler", &flags.scheduler, {"pbt", "pb2", "mf-pbt", "none"},
                      "Population Based Training, Population Based Bandits, two populations of different frequencies, "
                      "or random search");
  command_line.flag("--synch", &flags.synch, "trials wait for each other every 3 iterations");
  command_line.flag(
      "--compare", &flags.compare,
      "then train as many trials by random search, replay the schedule of the best one, and draw all three");
  command_line.option("--replay", &flags.replay,
                      "train one trial with the schedule of a policy file, pbt_policy_<trial id>.txt of an experiment");
  command_line.option("--cpus-per-trial", &flags.cpus_per_trial, "more trials than CPUs wait for their turn");
  command_line.option("--gpus-per-trial", &flags.gpus_per_trial, "0.25: four trials share one; 0: train on CPUs");
}

tune::AnyScheduler make_scheduler(const Flags& flags) {
  if (flags.scheduler == "none") return tune::FIFO{};
  const tune::Mutations mutations{{"lr", tune::loguniform(0.0001, 1)}, {"momentum", {0.0, 0.5, 0.8, 0.9}}};
  if (flags.scheduler == "pb2")
    return tune::PB2{.time_attr = "training_iteration",
                     .perturbation_interval = 3,
                     .hyperparam_bounds = {{"lr", tune::loguniform(0.0001, 1)}, {"momentum", tune::uniform(0, 0.9)}},
                     .synch = flags.synch};
  if (flags.scheduler == "mf-pbt")
    return tune::MultipleFrequenciesPBT{.time_attr = "training_iteration",
                                        .perturbation_interval = 3,
                                        .interval_factors = {1, 4},
                                        .hyperparam_mutations = mutations,
                                        .perturbation_factors = {2, 0.5},
                                        .synch = flags.synch};
  return tune::PopulationBasedTraining{.time_attr = "training_iteration",
                                       .perturbation_interval = 3,
                                       .hyperparam_mutations = mutations,
                                       .perturbation_factors = {2, 0.5},
                                       .synch = flags.synch};
}

tune::TunerOptions make_options(const Flags& flags) {
  return tune::TunerOptions{
      .param_space = {{"lr", tune::loguniform(0.0001, 1)}, {"momentum", tune::choice({0.0, 0.5, 0.8, 0.9})}},
      .tune_config = {.metric = tune::maximize("mean_accuracy"),
                      .num_samples = flags.num_samples,
                      .scheduler = make_scheduler(flags),
                      .seed = flags.seed},
      .run_config = {.name = flags.name,
                     .storage_path = flags.storage_path,
                     .stop = {{"training_iteration", flags.max_iterations}},
                     .checkpoint_config = {.num_to_keep = 4, .checkpoint_score_attribute = "mean_accuracy"}}};
}

// Returns options for as many trials with the same configs, each of which keeps its config.
tune::TunerOptions make_random_search_options(const Flags& flags) {
  tune::TunerOptions options = make_options(flags);
  options.tune_config.scheduler = tune::FIFO{};
  options.run_config.name += "_random_search";
  return options;
}

// Returns options for one trial with the sequence of configs that Population Based Training found for one of its
// trials.
tune::TunerOptions make_replay_options(const Flags& flags, const std::filesystem::path& policy_file) {
  tune::TunerOptions options = make_options(flags);
  options.tune_config.num_samples = 1;
  options.tune_config.scheduler = tune::PopulationBasedTrainingReplay{.policy_file = policy_file};
  return options;
}

tune::Tuner make_tuner(const Flags& flags, const tune::TunerOptions& options) {
  return {tune::with_resources(fn<train_convnet>, {.cpus = flags.cpus_per_trial, .gpus = flags.gpus_per_trial}),
          options};
}

tune::Tuner make_tuner(const Flags& flags) {
  open_images();  // reports a missing or damaged file now rather than in the trials
  if (flags.restore) return tune::Tuner::restore(flags.experiment_path());
  return make_tuner(flags, flags.replay.empty() ? make_options(flags) : make_replay_options(flags, flags.replay));
}

// Runs an experiment of the comparison, or continues it if it was interrupted.
tune::ResultGrid run_or_continue(const Flags& flags, const tune::TunerOptions& options) {
  const std::filesystem::path path = std::filesystem::path(flags.storage_path) / options.run_config.name;
  return (tune::Tuner::can_restore(path) ? tune::Tuner::restore(path) : make_tuner(flags, options)).fit();
}

// Compares the best trial of Population Based Training with the best one of a random search with as many steps, and
// with one network trained with the schedule that led to the former.
void compare(const Flags& flags, const tune::ResultGrid& population) {
  const tune::Result& best = population.get_best_result();
  std::vector<tune::ComparedTrial> trials{{"Population Based Training", population, best.trial_id}};

  const tune::ResultGrid random_search = run_or_continue(flags, make_random_search_options(flags));
  trials.push_back({"random search", random_search, random_search.get_best_result().trial_id});

  const std::filesystem::path policy = population.experiment_path() / ("pbt_policy_" + best.trial_id + ".txt");
  if (std::filesystem::exists(policy)) {  // its config has changed
    tune::TunerOptions options = make_replay_options(flags, policy);
    options.run_config.name += "_replay";
    const tune::ResultGrid replay = run_or_continue(flags, options);
    trials.push_back({"PBT's schedule replayed", replay, replay[0].trial_id});
  }
  const std::filesystem::path picture = population.experiment_path() / "comparison.svg";
  tune::write_plot(trials, picture, {.metrics = {"error"}, .logarithmic = {"error"}, .title = "The best trials"});

  std::cout << "\nOf the 10,000 test images the best of " << population.size() << " networks recognises, after "
            << flags.max_iterations << " iterations each (replayed: one network):\n";
  for (const auto& [label, results, trial_id] : trials)
    std::cout << "  " << 100 * results.get_best_result().metrics.get<double>("mean_accuracy") << " %  " << label
              << "\n";
  std::cout << "Their learning curves: " << picture.string() << "\n";
}

int run(const Flags& flags) {
  tune::Tuner tuner = make_tuner(flags);
  const tune::ResultGrid results = tuner.fit();

  const tune::Result& best = results.get_best_result();
  const std::filesystem::path picture = results.experiment_path() / "mean_accuracy.svg";
  tune::write_plot(results, picture, {.metrics = {"mean_accuracy"}});
  std::cout << "\nBest trial " << best.trial_id << ": mean_accuracy " << best.metrics.get<double>("mean_accuracy")
            << " at iteration " << best.metrics.get<std::int64_t>("training_iteration")
            << "\n  config:    " << cadre::to_json(best.config.dict()) << "\n  directory: " << best.path.string()
            << "\n  picture:   " << picture.string() << "\n";
  if (flags.compare) compare(flags, results);
  return results.num_errors() == 0 ? 0 : 1;
}

int main(int argc, char** argv) {
  Flags flags{{.num_samples = 8, .max_iterations = 30, .name = "pbt_mnist"}};
  examples::CommandLine command_line("Population Based Training of a small convolutional network on MNIST");
  add_flags(command_line, flags);
  if (const auto exit_code = command_line.parse(argc, argv)) return *exit_code;

  data_dir = flags.data_dir;
  // Before all else: the workers of all trials are forked from a process that begins here, and opens the images.
  cadre::init(argc, argv, {.preload = open_images});
  return examples::run_program("pbt_mnist", flags, [&] { return run(flags); });
}
