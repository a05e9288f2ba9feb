#include <utility>

#include "cadre/train_torch.h"

namespace cadre::train {
namespace {

constexpr const char* kBackend = "torch";

Config to_options(const TorchConfig& config) {
  detail::use_torch_backend();
  return {{"backend", config.backend},
          {"init_method", config.init_method},
          {"timeout_s", config.timeout.count()},
          {"check_collectives", config.check_collectives}};
}

}  // namespace

TorchTrainer::TorchTrainer(Loop loop, TrainerOptions options, const TorchConfig& torch_config)
    : Trainer(std::move(loop), std::move(options), kBackend, to_options(torch_config)) {}

Trainer TorchTrainer::restore(const std::filesystem::path& directory, const RestoreOptions& restore) {
  detail::use_torch_backend();
  return Trainer::restore(directory, restore);
}

}  // namespace cadre::train
