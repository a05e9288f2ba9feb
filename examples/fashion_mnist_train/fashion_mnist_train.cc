// Data-parallel training on Fashion-MNIST: every worker trains the same network on its share of the images, and their
// gradients are averaged, so that all of them have the same parameters after each step. The program of Ray Train's
// guide "Get started with distributed training using PyTorch", with what training really has: images that are changed
// at random, dropout, and a schedule for the learning rate. Killed at any moment and continued, it comes to the same
// parameters, bit for bit.
#include <cadre/torch/save_dict.h>
#include <cadre/train_torch.h>
#include <cadre/vision.h>
#include <torch/torch.h>

#include <filesystem>
#include <iostream>
#include <numeric>

#include "datasets/mnist_dataset.h"
#include "models/convnet.h"
#include "program/experiment_program.h"

using cadre::Config;
using cadre::fn;
using cadre::Metrics;
using datasets::Mnist;
using datasets::MnistDataset;
using datasets::MnistPart;
using examples::TrainingFlags;
using models::ConvNet;
namespace fs = std::filesystem;
namespace train = cadre::train;
namespace vision = cadre::vision;

constexpr std::size_t batch_size = 128;
constexpr datasets::Normalisation from_minus_one_to_one{.mean = 0.5, .deviation = 0.5};

MnistDataset fashion_mnist(const Config& config, MnistPart part) {
  return MnistDataset(Mnist(config.get<std::string>("data_dir"), part, from_minus_one_to_one),
                      config.get<std::int64_t>("max_images"));
}

vision::ResNet resnet() { return vision::resnet18({.num_classes = 10, .in_channels = 1}); }

// Runs in every worker. Returns the loss of the last epoch.
template <class Net>
double train_net(const Net& net, const Config& config) {
  const auto seed = config.get<std::uint64_t>("seed");
  const auto epochs = config.get<std::int64_t>("epochs");
  const int rank = train::get_context().get_world_rank();
  auto model = train::prepare_model(net);
  const auto augment = vision::compose(vision::RandomCrop{.height = 28, .width = 28, .padding = 2, .fill = -1},
                                       vision::RandomHorizontalFlip());
  auto loader = train::prepare_data_loader(train::transform(fashion_mnist(config, MnistPart::train), augment),
                                           {.batch_size = batch_size, .shuffle = true, .seed = seed});
  torch::optim::Adam optimizer(model.parameters());
  cadre::optim::LRScheduler scheduler(
      optimizer, cadre::optim::OneCycleLR{.max_lr = {0.004}, .total_steps = epochs * loader.size()});
  torch::manual_seed(seed + static_cast<std::uint64_t>(rank));  // each rank leaves out other features

  std::int64_t epoch = 0;
  const std::string random_file = "random_" + std::to_string(rank) + ".pt";
  const cadre::TrainingState state({{"model", model.module()},
                                    {"optimizer", optimizer},
                                    {"scheduler", scheduler},
                                    {"loader", loader},
                                    {"epoch", epoch}});
  const cadre::TrainingState own_state({{"random", cadre::RandomStates()}});
  if (const auto checkpoint = train::get_checkpoint()) {
    state.load(checkpoint->path() / "model.pt");
    own_state.load(checkpoint->path() / random_file);
  }
  double last_loss = 0;
  while (++epoch <= epochs) {
    model.train();
    train::MeanMetric mean_loss;
    for (auto& batch : loader) {
      model.zero_grad();
      const torch::Tensor loss = torch::nn::functional::cross_entropy(model(batch.data), batch.target);
      loss.backward();
      optimizer.step();
      scheduler.step();
      mean_loss.update(loss.detach(), static_cast<double>(batch.target.size(0)));
    }
    last_loss = mean_loss.compute();
    const Metrics metrics{{"epoch", epoch}, {"loss", last_loss}};
    train::report(metrics, [&](const fs::path& directory) {  // the files of all ranks are one checkpoint
      own_state.save(directory / random_file);
      if (rank == 0) state.save(directory / "model.pt");
    });
  }
  return last_loss;
}

double train_fashion_mnist(const Config& config) {
  torch::manual_seed(config.get<std::uint64_t>("seed"));
  if (config.get<std::string>("model") == "resnet18") return train_net(resnet(), config);
  return train_net(ConvNet(/*dropout=*/0.1), config);
}

train::Trainer make_trainer(const TrainingFlags& flags) {
  if (flags.restore) return train::TorchTrainer::restore(flags.run_path());
  Mnist(flags.data_dir, MnistPart::train);  // reports a missing data set before anything runs
  return train::TorchTrainer(fn<train_fashion_mnist>,
                             {.train_loop_config = {{"model", flags.model},
                                                    {"epochs", flags.epochs},
                                                    {"max_images", flags.max_images},
                                                    {"seed", flags.seed},
                                                    {"data_dir", fs::absolute(flags.data_dir).string()}},
                              .scaling_config = flags.scaling_config(),
                              .run_config = {.name = flags.name, .storage_path = flags.storage_path}});
}

// Returns the trained network's accuracy on the test images, from 0 to 1.
template <class Net>
double test_accuracy(Net model, const train::Result& result) {
  const torch::NoGradGuard no_grad;
  cadre::load_state(result.checkpoint->path() / "model.pt", *model);
  model->eval();
  MnistDataset test_set = fashion_mnist(result.config, MnistPart::test);
  std::vector<std::size_t> indices(test_set.size().value());
  std::iota(indices.begin(), indices.end(), 0);
  std::int64_t right = 0;
  for (std::size_t begin = 0; begin < indices.size(); begin += batch_size) {
    const std::size_t count = std::min(batch_size, indices.size() - begin);
    const torch::data::Example<> batch = test_set.get_batch(torch::ArrayRef(indices).slice(begin, count));
    right += model(batch.data).argmax(1).eq(batch.target).sum().template item<std::int64_t>();
  }
  return static_cast<double>(right) / static_cast<double>(indices.size());
}

int run(const TrainingFlags& flags) {
  const train::Result result = make_trainer(flags).fit();
  const bool is_resnet = result.config.get<std::string>("model") == "resnet18";
  const double accuracy = is_resnet ? test_accuracy(resnet(), result) : test_accuracy(ConvNet(), result);
  std::cout << "\nLoss " << result.return_value.get<double>() << ", accuracy on the test images " << accuracy
            << "\n  checkpoint: " << result.checkpoint->path().string() << "\n";
  return 0;
}

int main(int argc, char** argv) {
  cadre::init(argc, argv);  // first: from here on, the workers of all ranks are forked

  TrainingFlags flags{.name = "fashion_mnist_train"};
  examples::CommandLine command_line("Data-parallel training on Fashion-MNIST");
  examples::add_flags(command_line, flags);
  if (const auto exit_code = command_line.parse(argc, argv)) return *exit_code;
  return examples::run_program("fashion_mnist_train", {.storage_path = flags.storage_path, .name = flags.name},
                               [&] { return run(flags); });
}
