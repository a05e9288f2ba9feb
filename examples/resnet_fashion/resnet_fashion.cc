// ResNet-18 on Fashion-MNIST with what a real training has around its loop: JPEG files, images that are changed at
// random, a one-cycle rate, mixed precision, averages of the weights, four ranks, checkpoints within an epoch, and a
// validation of each epoch's averages beside the training. Killed at any moment and started again, it comes to the same
// parameters, bit for bit.
#include <cadre/data_torch.h>
#include <cadre/torch/save_dict.h>
#include <cadre/train_torch.h>
#include <cadre/vision.h>
#include <torch/torch.h>

#include <filesystem>
#include <iostream>
#include <utility>

#include "program/command_line.h"

using namespace cadre;
namespace fs = std::filesystem;

constexpr std::int64_t batch_size = 32;  // of each rank

struct Settings {
  std::string data_dir = "data/fashion_mnist_jpegs";
  std::uint64_t epochs = 10;
  std::int64_t save_every = 100;
  std::uint64_t seed = 0;
};

// ---- Images, in folders that have the names of their classes, 0 to 9

// Makes numbers of the names of folders.
data::Batch with_labels(const data::Batch& batch) {
  std::vector<std::int64_t> labels;
  for (const std::string_view folder : batch.texts("label")) labels.push_back(folder[0] - '0');
  return batch.with("label", std::move(labels));
}

// Returns rows of "image", "label" and "row", which is their number.
data::Dataset read_images(const std::string& path) {
  return data::with_row_numbers(data::read_images(path, {.size = {28, 28},
                                                         .mode = data::ImageMode::grey,
                                                         .partitioning = data::Partitioning::dir({"label"})}))
      .map_batches(fn<with_labels>);
}

// Changes images at random: the same one always in the same way in the same epoch.
data::Batch augment(const data::Batch& batch, const Config& config, const data::CallContext& context) {
  const auto change =
      vision::compose(vision::RandomCrop{.height = 28, .width = 28, .padding = 2}, vision::RandomHorizontalFlip());
  const auto rows = batch.to_vector<std::uint64_t>("row");
  std::vector<torch::Tensor> images = data::to_tensor(batch, "image").unsqueeze(1).unbind();
  for (std::size_t i = 0; i < images.size(); ++i) {
    KeyedRandom random = KeyedRandom::of_example(config.get<std::uint64_t>("seed"), context.epoch, rows[i]);
    images[i] = change(images[i], *random);
  }
  return batch.with("image", data::to_column(torch::stack(images)));
}

torch::Tensor pixels_of(const data::TensorBatch& batch) {
  return batch.at("image").view({-1, 1, 28, 28}).to(torch::kFloat).div_(255).sub_(0.286).div_(0.353);
}

vision::ResNet resnet() { return vision::resnet18({.num_classes = 10, .in_channels = 1}); }

// ---- Training, in every rank

void train_resnet(const Settings& settings) {
  const train::TrainContext context = train::get_context();
  data::Shard shard = read_images(settings.data_dir + "/train")
                          .map_batches(fn<augment>, {.config = {{"seed", settings.seed}}})
                          .shard({.rank = context.get_world_rank(),
                                  .world_size = context.get_world_size(),
                                  .equal = true,
                                  .shuffle = true,
                                  .seed = settings.seed});
  const data::TorchBatchesOptions in_batches{
      .batch_size = batch_size, .local_shuffle_buffer_size = 10000, .local_shuffle_seed = settings.seed};
  const std::int64_t steps_of_epoch = (shard.size() + batch_size - 1) / batch_size;
  const std::int64_t steps = static_cast<std::int64_t>(settings.epochs) * steps_of_epoch;

  torch::manual_seed(settings.seed);
  auto model = train::prepare_model(resnet());
  AveragedWeights averages(model.module(), {.decay = 0.99, .use_buffers = true});
  torch::optim::SGD optimizer(model.parameters(),
                              torch::optim::SGDOptions(0.05).momentum(0.9).nesterov(true).weight_decay(5e-4));
  optim::LRScheduler scheduler(optimizer, optim::OneCycleLR{.max_lr = {0.05}, .total_steps = steps});
  const bool is_on_gpu = train::get_device().is_cuda();
  GradScaler scaler({.enabled = is_on_gpu});  // bfloat16, on the CPU, needs none
  std::uint64_t epoch = 0;
  Value position;  // in the epoch's images
  const TrainingState state({{"model", model.module()},
                             {"averages", averages},
                             {"optimizer", optimizer},
                             {"scheduler", scheduler},
                             {"scaler", scaler},
                             {"random", RandomStates()},
                             {"epoch", epoch},
                             {"position", position}});
  if (const auto checkpoint = train::get_checkpoint()) state.load(checkpoint->path() / "state.pt");

  for (train::MeanMetric mean_loss; epoch < settings.epochs; ++epoch) {
    position.is_null() ? shard.set_epoch(epoch) : shard.set_position(std::exchange(position, Value()));
    for (const data::TensorBatch& batch : data::iter_torch_batches(shard, in_batches)) {
      model.zero_grad();
      torch::Tensor loss;
      {
        const auto mixed_precision = train::autocast(is_on_gpu ? torch::kHalf : torch::kBFloat16);
        loss = torch::nn::functional::cross_entropy(model(pixels_of(batch)), batch.at("label"));
      }
      scaler.scale(loss).backward();
      scaler.step(optimizer);
      scaler.update();
      scheduler.step();
      averages.update_parameters(model.module());
      mean_loss.update(loss.detach());

      const std::int64_t step = scheduler.last_epoch();
      const bool ends_epoch = step % steps_of_epoch == 0;
      if (!ends_epoch && step % settings.save_every != 0) continue;
      const Metrics metrics{{"epoch", epoch + 1}, {"step", step}, {"loss", mean_loss.compute()}};
      mean_loss.reset();
      position = shard.position();
      const auto save = [&](const fs::path& directory) { state.save(directory / "state.pt"); };
      context.get_world_rank() == 0 ? train::report(metrics, save, {.validation = ends_epoch}) : train::report(metrics);
    }
    position = Value();
  }
}

// ---- Validation, in a process of its own

Metrics validate(const Checkpoint& checkpoint, const Config& config) {
  const torch::NoGradGuard no_grad;
  vision::ResNet model = resnet();
  AveragedWeights averages(model);
  load_dict(checkpoint.path() / "state.pt", {{"averages", averages}});
  averages.copy_to(model);
  model->to(train::get_device());
  model->eval();
  train::MeanMetric accuracy;
  for (const data::TensorBatch& batch : data::iter_torch_batches(read_images(config.get<std::string>("path"))))
    accuracy.update(model(pixels_of(batch)).argmax(1).eq(batch.at("label")));
  return {{"accuracy", accuracy.compute()}};
}

int main(int argc, char** argv) {
  cadre::init(argc, argv);  // first: from here on, the processes of all ranks and validators are forked
  Settings settings;
  std::int64_t num_workers = 4;
  double gpus_per_worker = 0;
  std::string storage_path = "results";
  std::string name = "resnet_fashion";
  examples::CommandLine command_line("ResNet-18 on Fashion-MNIST as JPEG files");
  command_line.option("--data-dir", &settings.data_dir, "folder that write_jpegs.py has made");
  command_line.option("--epochs", &settings.epochs, "times that all images are seen");
  command_line.option("--save-every", &settings.save_every, "steps from checkpoint to checkpoint within an epoch");
  command_line.option("--seed", &settings.seed, "of all random choices");
  command_line.option("--num-workers", &num_workers, "processes that train together, two on each CPU");
  command_line.option("--gpus-per-worker", &gpus_per_worker, "0.5: two workers share one; 0: train on CPUs");
  command_line.option("--storage-path", &storage_path, "folder for runs");
  command_line.option("--name", &name, "of the run's folder; a run that was interrupted goes on");
  if (const auto exit_code = command_line.parse(argc, argv)) return *exit_code;

  train::TorchTrainer trainer(
      fn<train_resnet>, {.train_loop_config = to_config(settings),
                         .scaling_config = {.num_workers = num_workers,
                                            .use_gpu = gpus_per_worker > 0,
                                            .resources_per_worker = Resources{.cpus = 0.5, .gpus = gpus_per_worker}},
                         .run_config = {.name = name,
                                        .if_exists = IfExists::restore,
                                        .storage_path = storage_path,
                                        .checkpoint_config = {.num_to_keep = 2}},
                         .validation = {.function = fn<validate>,
                                        .config = {{"path", settings.data_dir + "/test"}},
                                        .resources = {.cpus = 0}}});  // beside the ranks, which have all CPUs
  const train::Result result = trainer.fit();
  std::cout << "accuracy " << result.best_checkpoints.back().metrics.get<double>("accuracy") << "\n";
  return 0;
}
