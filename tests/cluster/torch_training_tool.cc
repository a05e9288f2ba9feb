// A program that trains one model in four workers, for training_test.py:
//
//   torch_training_tool <storage path> <steps> <CPUs of a worker> <milliseconds of a step>
//
// continues the run if it is there. Prints the hosts of its workers and all parameters, to the last bit.
#include <cadre/init.h>
#include <cadre/torch.h>
#include <cadre/train_torch.h>
#include <torch/torch.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <string>
#include <thread>

#include "base/machine.h"

namespace {

using namespace cadre;

constexpr std::int64_t kInputs = 8;

torch::nn::Sequential make_net() {
  return torch::nn::Sequential(torch::nn::Linear(kInputs, 64), torch::nn::Tanh(), torch::nn::Linear(64, 1));
}

torch::Tensor inputs_of(std::int64_t number) {
  return torch::randn({16, kInputs}, at::detail::createCPUGenerator(static_cast<std::uint64_t>(number)));
}

// Returns the bits of all parameters, each as an integer.
std::string bits_of(const torch::nn::Module& module) {
  std::string digits;
  for (const torch::Tensor& parameter : module.parameters()) {
    const torch::Tensor whole = parameter.detach().flatten().contiguous().view(torch::kInt);
    for (std::int64_t i = 0; i < whole.numel(); ++i) digits += std::to_string(whole[i].item<std::int32_t>()) + " ";
  }
  return digits;
}

void learn(const Config& config) {
  const train::TrainContext context = train::get_context();
  torch::manual_seed(5);
  auto model = train::prepare_model(make_net());
  torch::optim::SGD optimizer(model.parameters(), torch::optim::SGDOptions(0.05).momentum(0.9));
  std::int64_t step = 0;
  if (const auto checkpoint = train::get_checkpoint())
    step = load_state(checkpoint->path() / "model.pt", model.module(), optimizer);
  std::cout << "on " << base::host_name() << " local rank " << context.get_local_rank() << " of "
            << context.get_local_world_size() << ", node " << context.get_node_rank() << std::endl;
  while (++step <= config.get<std::int64_t>("steps")) {
    const torch::Tensor batch = inputs_of(step * 100 + context.get_world_rank());
    model.zero_grad();
    const torch::Tensor loss = torch::mse_loss(model(batch), batch.sum(1, /*keepdim=*/true));
    loss.backward();
    optimizer.step();
    std::this_thread::sleep_for(std::chrono::milliseconds(config.get<std::int64_t>("milliseconds")));
    const bool is_last = step == config.get<std::int64_t>("steps");
    train::report({{"step", step}, {"bits", is_last ? bits_of(model.module()) : ""}},
                  [&](const std::filesystem::path& directory) {
                    if (context.get_world_rank() == 0)
                      save_state(directory / "model.pt", model.module(), optimizer, step);
                  });
  }
}

}  // namespace

int main(int argc, char** argv) {
  init(argc, argv);
  const train::Result result =
      train::TorchTrainer(
          fn<learn>,
          {.train_loop_config = {{"steps", std::atoll(argv[2])}, {"milliseconds", std::atoll(argv[4])}},
           .scaling_config = {.num_workers = 4, .resources_per_worker = Resources{.cpus = std::atof(argv[3])}},
           .run_config = {.name = "training",
                          .if_exists = IfExists::restore,
                          .storage_path = argv[1],
                          .failure_config = {.max_failures = 2},
                          .verbose = 0}})
          .fit();
  if (result.error) {
    std::cerr << *result.error << '\n';
    return 1;
  }
  std::cout << result.metrics.get<std::int64_t>("step") << ": " << result.metrics.get<std::string>("bits") << '\n';
}
