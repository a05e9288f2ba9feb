// cadre_step_time: how long a step of data-parallel training takes, and how much memory it needs. peers/step_time.py
// runs it and its Python counterpart in turns, and compares them. A step is forward, backward with averaged gradients,
// and Adam, always on the same batch.
#include <cadre/train_torch.h>
#include <cadre/vision.h>
#include <torch/torch.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>

#include "cli/command_line.h"
#include "models/convnet.h"

namespace {

namespace train = cadre::train;
using Clock = std::chrono::steady_clock;

constexpr std::int64_t width = 512;
constexpr std::int64_t length = 32;

torch::nn::TransformerEncoderLayer layer() {
  return torch::nn::TransformerEncoderLayer(
      torch::nn::TransformerEncoderLayerOptions(width, /*nhead=*/8).dim_feedforward(4 * width).dropout(0));
}

// Takes [length, N, width], returns scores of ten classes, [N, 10].
struct TransformerImpl : torch::nn::Module {
  torch::Tensor forward(torch::Tensor x) {
    for (const auto& module : *layers) x = module->as<torch::nn::TransformerEncoderLayerImpl>()->forward(x);
    return fc(x.mean(0));
  }
  torch::nn::ModuleList layers = register_module(
      "layers", torch::nn::ModuleList(layer(), layer(), layer(), layer(), layer(), layer(), layer(), layer()));
  torch::nn::Linear fc = register_module("fc", torch::nn::Linear(width, 10));
};
TORCH_MODULE(Transformer);

// Returns a line of /proc/self/status, such as VmHWM, the most memory that this process had, in MiB.
double memory_mib(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(name + ":")) return std::stod(line.substr(name.size() + 1)) / 1024;
  }
  return 0;
}

torch::Tensor batch_of(const cadre::Config& config) {
  const auto size = config.get<std::int64_t>("batch_size");
  return config.get<std::string>("model") == "transformer" ? torch::randn({length, size, width})
                                                           : torch::randn({size, 1, 28, 28});
}

// Returns the milliseconds of each step after the warm-up, and the most memory over that before the model was there.
template <class Model, class Optimizer>
cadre::Value time_steps(Model& model, Optimizer& optimizer, double memory_before, const cadre::Config& config) {
  const torch::Tensor input = batch_of(config);
  const torch::Tensor labels = torch::randint(10, {config.get<std::int64_t>("batch_size")}, torch::kLong);
  const auto warm_up = config.get<std::int64_t>("warm_up");
  const auto steps = config.get<std::int64_t>("steps");
  cadre::List times;
  for (std::int64_t step = 0; step < warm_up + steps; ++step) {
    const auto began = Clock::now();
    optimizer.zero_grad();
    torch::nn::functional::cross_entropy(model(input), labels).backward();
    optimizer.step();
    if (step >= warm_up) times.emplace_back(std::chrono::duration<double, std::milli>(Clock::now() - began).count());
  }
  return cadre::Dict{{"step_ms", std::move(times)}, {"memory_mib", memory_mib("VmHWM") - memory_before}};
}

template <class Net>
cadre::Value time_divided_steps(Net (*make)(), const cadre::Config& config) {
  const double memory_before = memory_mib("VmRSS");
  const torch::optim::AdamOptions options(0.001);
  const auto divided = config.get<std::string>("divided");
  if (divided == "parameters") {
    auto model = train::fully_shard(make(), train::modules_of<torch::nn::TransformerEncoderLayerImpl>());
    torch::optim::Adam optimizer(model.parameters(), options);
    return time_steps(model, optimizer, memory_before, config);
  }
  auto model = train::prepare_model(make());
  if (divided == "optimizer") {
    auto optimizer = train::prepare_optimizer<torch::optim::Adam>(model.parameters(), options);
    return time_steps(model, optimizer, memory_before, config);
  }
  torch::optim::Adam optimizer(model.parameters(), options);
  return time_steps(model, optimizer, memory_before, config);
}

cadre::Value time_steps_of_model(const cadre::Config& config) {
  torch::manual_seed(0);
  const auto model = config.get<std::string>("model");
  if (model == "transformer") return time_divided_steps(+[] { return Transformer(); }, config);
  if (model == "convnet") return time_divided_steps(+[] { return models::ConvNet(); }, config);
  return time_divided_steps(+[] { return cadre::vision::resnet18({.num_classes = 10, .in_channels = 1}); }, config);
}

}  // namespace

int main(int argc, char** argv) {
  cadre::init(argc, argv);
  std::string model = "convnet";
  std::string divided = "nothing";
  std::int64_t workers = 2;
  std::int64_t batch_size = 128;
  std::int64_t warm_up = 5;
  std::int64_t steps = 50;
  std::filesystem::path storage_path;
  cadre::cli::Program program("Milliseconds of the steps of rank 0, and its memory, as one line of JSON",
                              "cadre_step_time");
  cadre::cli::Command command = program.command();
  command.show_defaults();
  command.option("--model", &model).one_of({"convnet", "resnet18", "transformer"});
  command.option("--divided", &divided, "among the ranks").one_of({"nothing", "optimizer", "parameters"});
  command.option("--workers", &workers, "ranks, of one thread each");
  command.option("--batch-size", &batch_size, "of each rank");
  command.option("--warm-up", &warm_up, "steps that do not count");
  command.option("--steps", &steps, "that do");
  command.option("--storage-path", &storage_path, "folder for the run, which stays there").required();
  command.on_call([&] {
    train::TorchTrainer trainer(cadre::fn<time_steps_of_model>,
                                {.train_loop_config = {{"model", model},
                                                       {"divided", divided},
                                                       {"batch_size", batch_size},
                                                       {"warm_up", warm_up},
                                                       {"steps", steps}},
                                 .scaling_config = {.num_workers = workers},
                                 .run_config = {.name = "step_time", .storage_path = storage_path, .verbose = 0}});
    const train::Result result = trainer.fit();
    cadre::Dict line = result.return_value.get<cadre::Dict>();
    line.emplace_back("peer", "cadre");
    std::cout << cadre::to_json(line) << "\n";
  });
  return program.parse(argc, argv, /*wrong_usage=*/2);
}
