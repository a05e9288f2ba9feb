// cadre_step_time: how long a step of data-parallel training takes. peers/step_time.py runs it and its Python
// counterpart in turns, and compares them. A step is forward, backward with averaged gradients, and Adam, always on the
// same batch.
#include <cadre/train_torch.h>
#include <cadre/vision.h>
#include <torch/torch.h>

#include <chrono>
#include <filesystem>
#include <iostream>

#include "cli/command_line.h"
#include "models/convnet.h"

namespace {

namespace train = cadre::train;
using Clock = std::chrono::steady_clock;

// Returns the milliseconds of each step after the warm-up.
template <class Net>
cadre::List time_steps(const Net& net, const cadre::Config& config) {
  auto model = train::prepare_model(net);
  torch::optim::Adam optimizer(model.parameters(), torch::optim::AdamOptions(0.001));
  const auto batch_size = config.get<std::int64_t>("batch_size");
  const torch::Tensor images = torch::randn({batch_size, 1, 28, 28});
  const torch::Tensor labels = torch::randint(10, {batch_size}, torch::kLong);
  const auto warm_up = config.get<std::int64_t>("warm_up");
  const auto steps = config.get<std::int64_t>("steps");
  cadre::List times;
  for (std::int64_t step = 0; step < warm_up + steps; ++step) {
    const auto began = Clock::now();
    model.zero_grad();
    torch::nn::functional::cross_entropy(model(images), labels).backward();
    optimizer.step();
    if (step >= warm_up) times.emplace_back(std::chrono::duration<double, std::milli>(Clock::now() - began).count());
  }
  return times;
}

cadre::Value time_steps_of_model(const cadre::Config& config) {
  torch::manual_seed(0);
  if (config.get<std::string>("model") == "convnet") return time_steps(models::ConvNet(), config);
  return time_steps(cadre::vision::resnet18({.num_classes = 10, .in_channels = 1}), config);
}

}  // namespace

int main(int argc, char** argv) {
  cadre::init(argc, argv);
  std::string model = "convnet";
  std::int64_t workers = 2;
  std::int64_t batch_size = 128;
  std::int64_t warm_up = 5;
  std::int64_t steps = 50;
  std::filesystem::path storage_path;
  cadre::cli::Program program("Milliseconds of the steps of rank 0, as one line of JSON", "cadre_step_time");
  cadre::cli::Command command = program.command();
  command.show_defaults();
  command.option("--model", &model).one_of({"convnet", "resnet18"});
  command.option("--workers", &workers, "ranks, of one thread each");
  command.option("--batch-size", &batch_size, "of each rank");
  command.option("--warm-up", &warm_up, "steps that do not count");
  command.option("--steps", &steps, "that do");
  command.option("--storage-path", &storage_path, "folder for the run, which stays there").required();
  command.on_call([&] {
    train::TorchTrainer trainer(
        cadre::fn<time_steps_of_model>,
        {.train_loop_config = {{"model", model}, {"batch_size", batch_size}, {"warm_up", warm_up}, {"steps", steps}},
         .scaling_config = {.num_workers = workers},
         .run_config = {.name = "step_time", .storage_path = storage_path, .verbose = 0}});
    const train::Result result = trainer.fit();
    std::cout << cadre::to_json({{"peer", "cadre"}, {"step_ms", result.return_value}}) << "\n";
  });
  return program.parse(argc, argv, /*wrong_usage=*/2);
}
