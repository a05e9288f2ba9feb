// A project outside of Cadre, with libtorch: fits a line to points; half-way every trial fails and continues from its
// checkpoint.
//
//   train <storage path>
#include <cadre/torch.h>
#include <cadre/torch/save_dict.h>
#include <cadre/train_torch.h>
#include <cadre/tune.h>

#include <cstdint>
#include <filesystem>
#include <iostream>
#include <stdexcept>

using namespace cadre;

void fit_line(const Config& config) {
  torch::manual_seed(static_cast<std::int64_t>(tune::get_context().get_seed() >> 1));
  auto line = train::prepare_model(torch::nn::Linear(1, 1));  // with a world size of 1
  torch::optim::SGD optimizer(line.parameters(), config.get<double>("lr"));
  optim::LRScheduler scheduler(optimizer, optim::ExponentialLR{.gamma = 0.999});
  std::int64_t step = 1;
  const auto checkpoint = tune::get_checkpoint();
  if (checkpoint)
    load_dict(checkpoint->path() / "state.pt",
              {{"model", line.module()}, {"optimizer", optimizer}, {"scheduler", scheduler}, {"next", step}});
  const torch::Tensor x = torch::linspace(-1, 1, 16).unsqueeze(1);
  const torch::Tensor y = 2 * x + 1;
  for (;; ++step) {
    if (step == 50 && !checkpoint) throw std::runtime_error("half-way");
    optimizer.zero_grad();
    const torch::Tensor loss = torch::mse_loss(line(x), y);
    loss.backward();
    optimizer.step();
    scheduler.step();
    tune::report({{"loss", loss.item<double>()}, {"step", step}}, [&](const std::filesystem::path& directory) {
      save_dict(directory / "state.pt", {{"model", line.module()},
                                         {"optimizer", optimizer},
                                         {"scheduler", scheduler},
                                         {"step", step},
                                         {"next", step + 1}});
    });
  }
}

int main(int argc, char** argv) {
  cadre::init(argc, argv, {.num_cpus = 2});
  tune::Tuner tuner(fn<fit_line>, {.param_space = {{"lr", tune::uniform(0.1, 0.5)}},
                                   .tune_config = {.metric = tune::minimize("loss"), .num_samples = 2},
                                   .run_config = {.name = "line",
                                                  .storage_path = argv[1],
                                                  .stop = {{"step", tune::at_least(100)}},
                                                  .checkpoint_config = {.num_to_keep = 1},
                                                  .failure_config = {.max_failures = 1},
                                                  .verbose = 0}});
  for (const tune::Result& trial : tuner.fit()) {
    torch::nn::Linear line(1, 1);
    const std::int64_t step = load_state(trial.checkpoint.value().path() / "state.pt", line);
    std::cout << "trial " << trial.trial_id << " attempts " << trial.attempts << " iterations "
              << trial.metrics.get<std::int64_t>("training_iteration") << " step " << step << " weight "
              << line->weight.item<double>() << " bias " << line->bias.item<double>() << '\n';
  }
}
