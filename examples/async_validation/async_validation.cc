// Validation concurrent with training: Fashion-MNIST in Parquet files, several workers that train on it and report a
// checkpoint each epoch, and a validator that evaluates each checkpoint meanwhile, in one of three ways. The same
// program as Ray Train's guide "Validate checkpoints asynchronously".
#include <cadre/data_torch.h>
#include <cadre/train_torch.h>
#include <cadre/vision.h>
#include <torch/torch.h>

#include <cmath>
#include <filesystem>
#include <iostream>

#include "datasets/idx.h"
#include "models/convnet.h"
#include "program/experiment_program.h"

using cadre::Checkpoint;
using cadre::Config;
using cadre::fn;
using cadre::Metrics;
using cadre::Value;
using models::ConvNet;
namespace data = cadre::data;
namespace fs = std::filesystem;
namespace train = cadre::train;
namespace vision = cadre::vision;

constexpr std::int64_t batch_size = 128;

// ---- The images, in Parquet files

// Returns rows of "image", 784 bytes, and "label".
data::Dataset read_idx_files(const fs::path& folder, const std::string& part) {
  const auto read = [&](const std::string& name, std::size_t dimensions) {
    const fs::path plain = folder / (part + name);
    return datasets::read_idx(fs::exists(plain) ? plain : fs::path(plain.string() + ".gz"), dimensions);
  };
  const datasets::IdxArray images = read("-images-idx3-ubyte", 3);
  const datasets::IdxArray labels = read("-labels-idx1-ubyte", 1);
  const auto tensor = [](const datasets::IdxArray& array, std::int64_t row_bytes) {
    auto* const bytes = const_cast<std::uint8_t*>(array.elements.data());  // NOLINT: libtorch has no tensor of const
    return torch::from_blob(bytes, {static_cast<std::int64_t>(array.elements.size()) / row_bytes, row_bytes},
                            torch::kUInt8)
        .clone();
  };
  return data::from_tensors({{"image", tensor(images, 784)}, {"label", tensor(labels, 1).flatten().to(torch::kLong)}});
}

// Writes the Parquet files once; later runs find them.
data::Dataset fashion_mnist(const fs::path& idx_folder, const fs::path& parquet_folder, const std::string& part) {
  const fs::path folder = parquet_folder / part;
  if (!fs::exists(folder)) {
    const fs::path unfinished = parquet_folder / (part + ".unfinished");
    fs::remove_all(unfinished);
    read_idx_files(idx_folder, part)
        .write_parquet(unfinished, {.max_rows_per_file = 20000, .rows_per_row_group = 2000});
    fs::rename(unfinished, folder);
  }
  return data::read_parquet(folder);
}

torch::Tensor images_of(const data::TensorBatch& batch) {
  return batch.at("image").to(torch::kFloat).div(127.5).sub(1).view({-1, 1, 28, 28});
}

vision::ResNet resnet() { return vision::resnet18({.num_classes = 10, .in_channels = 1}); }

// ---- Training, in every worker

template <class Net>
void train_net(const Net& net, const Config& config) {
  auto model = train::prepare_model(net);
  torch::optim::Adam optimizer(model.parameters(), torch::optim::AdamOptions(0.001));
  data::Shard shard =
      data::get_dataset_shard("train", {.equal = true, .shuffle = true, .seed = config.get<std::uint64_t>("seed")});

  std::int64_t epoch = 1;
  if (const auto checkpoint = train::get_checkpoint())
    epoch = cadre::load_state(checkpoint->path() / "model.pt", model.module(), optimizer) + 1;
  for (; epoch <= config.get<std::int64_t>("epochs"); ++epoch) {
    shard.set_epoch(static_cast<std::uint64_t>(epoch));
    model.train();
    train::MeanMetric mean_loss;
    for (const data::TensorBatch& batch :
         data::iter_torch_batches(shard, {.batch_size = batch_size, .local_shuffle_buffer_size = 10000})) {
      model.zero_grad();
      const torch::Tensor loss = torch::nn::functional::cross_entropy(model(images_of(batch)), batch.at("label"));
      loss.backward();
      optimizer.step();
      mean_loss.update(loss.detach(), static_cast<double>(batch.at("label").size(0)));
    }
    const Metrics metrics{{"epoch", epoch}, {"loss", mean_loss.compute()}};
    if (train::get_context().get_world_rank() != 0) {
      train::report(metrics);
    } else {
      const auto save = [&](const fs::path& directory) {
        cadre::save_state(directory / "model.pt", model.module(), optimizer, epoch);
      };
      train::report(metrics, save,
                    {.checkpoint_upload_mode = train::CheckpointUploadMode::async,
                     .validation = train::ValidationTask{.config = {{"epoch", epoch}}}});
    }
  }
}

void train_fashion_mnist(const Config& config) {
  torch::manual_seed(config.get<std::uint64_t>("seed"));
  config.get<std::string>("model") == "resnet18" ? train_net(resnet(), config) : train_net(ConvNet(), config);
}

// ---- A trained network of either architecture

class Predictor {
 public:
  explicit Predictor(const Config& config) : is_resnet_(config.get<std::string>("model") == "resnet18") {
    const fs::path file = fs::path(config.get<std::string>("checkpoint")) / "model.pt";
    is_resnet_ ? cadre::load_state(file, *resnet_) : cadre::load_state(file, *convnet_);
    resnet_->eval();
    convnet_->eval();
  }

  // Returns for each image whether its label is predicted correctly.
  torch::Tensor is_right(const data::TensorBatch& batch) {
    const torch::NoGradGuard no_grad;
    const torch::Tensor output = is_resnet_ ? resnet_(images_of(batch)) : convnet_(images_of(batch));
    return output.argmax(1).eq(batch.at("label"));
  }

  // Returns the same as a column, for map_batches.
  data::Batch operator()(const data::Batch& batch) {
    return data::Batch({{"res", data::to_column(is_right(data::to_tensors(batch)).to(torch::kDouble))}});
  }

 private:
  bool is_resnet_;
  vision::ResNet resnet_ = resnet();
  ConvNet convnet_;
};

Config predictor_config(const Checkpoint& checkpoint, const Config& config) {
  return {{"model", config.get<std::string>("model")}, {"checkpoint", checkpoint.path().string()}};
}

Metrics metrics_of(double accuracy, std::int64_t images) {
  return {{"accuracy", accuracy}, {"right", std::llround(accuracy * static_cast<double>(images))}};
}

// ---- Three validators

// Evaluates in one process, image by image.
Metrics validate_simply(const Checkpoint& checkpoint, const Config& config) {
  Predictor predictor(predictor_config(checkpoint, config));
  std::int64_t right = 0;
  std::int64_t images = 0;
  for (const data::TensorBatch& batch :
       data::iter_torch_batches(data::Dataset(config.at("test")), {.batch_size = batch_size})) {
    right += predictor.is_right(batch).sum().item<std::int64_t>();
    images += batch.at("label").size(0);
  }
  return metrics_of(static_cast<double>(right) / static_cast<double>(images), images);
}

// Runs in every worker of a training run that only evaluates.
void evaluate(const Config& config) {
  Predictor predictor(config);
  train::MeanMetric accuracy;
  for (const data::TensorBatch& batch :
       data::iter_torch_batches(data::get_dataset_shard("test"), {.batch_size = batch_size})) {
    const torch::Tensor right = predictor.is_right(batch).to(torch::kDouble);
    accuracy.update(right.mean(), static_cast<double>(right.size(0)));
  }
  train::report({{"accuracy", accuracy.compute()}});
}

Metrics validate_with_trainer(const Checkpoint& checkpoint, const Config& config) {
  const data::Dataset test(config.at("test"));
  train::TorchTrainer trainer(
      fn<evaluate>, {.train_loop_config = predictor_config(checkpoint, config),
                     .scaling_config = {.num_workers = config.get<std::int64_t>("num_workers")},
                     .run_config = {.name = train::get_context().get_experiment_name() + "_validation_epoch_" +
                                            std::to_string(config.get<std::int64_t>("epoch")),
                                    .verbose = 0},
                     .datasets = {{"test", test}}});
  return metrics_of(trainer.fit().metrics.get<double>("accuracy"), test.count());
}

Metrics validate_with_map_batches(const Checkpoint& checkpoint, const Config& config) {
  const data::Dataset test(config.at("test"));
  const data::Dataset results = test.map_batches(
      data::actor<Predictor>(), {.batch_size = batch_size, .constructor_config = predictor_config(checkpoint, config)});
  return metrics_of(results.mean("res"), test.count());
}

// ---- The program

struct Flags : examples::TrainingFlags {
  std::string validator = "simple";
};

// A validator with workers takes no CPU itself, and one CPU for each worker.
train::ValidationConfig validation_of(const Flags& flags, const data::Dataset& test) {
  train::ValidationConfig validation{
      .function = fn<validate_simply>,
      .config = {{"model", flags.model}, {"test", test}, {"num_workers", flags.num_workers}},
      .max_retries = 3};
  if (flags.validator == "simple") return validation;
  validation.resources = {.cpus = 0};
  validation.workers.bundles.assign(static_cast<std::size_t>(flags.num_workers), {.cpus = 1});
  validation.function =
      flags.validator == "trainer" ? train::Validator(fn<validate_with_trainer>) : fn<validate_with_map_batches>;
  return validation;
}

train::Trainer make_trainer(const Flags& flags) {
  if (flags.restore) return train::TorchTrainer::restore(flags.run_path());
  const fs::path parquet = fs::path(flags.storage_path) / "fashion_mnist_parquet";
  data::Dataset training = fashion_mnist(flags.data_dir, parquet, "train");
  data::Dataset test = fashion_mnist(flags.data_dir, parquet, "t10k");
  if (flags.max_images > 0) {
    training = training.limit(flags.max_images);
    test = test.limit(flags.max_images);
  }
  return train::TorchTrainer(
      fn<train_fashion_mnist>,
      {.train_loop_config = {{"model", flags.model}, {"epochs", flags.epochs}, {"seed", flags.seed}},
       .scaling_config = flags.scaling_config(),
       .run_config = {.name = flags.name,
                      .storage_path = flags.storage_path,
                      .checkpoint_config = {.checkpoint_score_attribute = cadre::maximize("accuracy")}},
       .validation = validation_of(flags, test),
       .datasets = {{"train", training}}});
}

int run(const Flags& flags) {
  const train::Result result = make_trainer(flags).fit();
  std::cout << "\nCheckpoints, the best one last:\n";
  for (const train::ReportedCheckpoint& one : result.best_checkpoints) {
    std::cout << "  epoch " << one.metrics.get<std::int64_t>("epoch") << ": " << to_string(one.status);
    if (one.validation_error.empty()) {
      std::cout << ", accuracy " << one.metrics.get<double>("accuracy") << " ("
                << one.metrics.get<std::int64_t>("right") << " right)";
    } else {
      std::cout << ": " << one.validation_error;
    }
    std::cout << "\n";
  }
  return 0;
}

int main(int argc, char** argv) {
  cadre::init(argc, argv);  // first: from here on, the workers of all ranks and validators are forked

  Flags flags{{.epochs = 3, .model = "convnet", .name = "async_validation"}};
  examples::CommandLine command_line("Validation beside training, on Fashion-MNIST");
  examples::add_flags(command_line, flags);
  command_line.choice("--validator", &flags.validator, {"simple", "trainer", "map_batches"},
                      "one process, a group of workers, or a dataset's own workers");
  if (const auto exit_code = command_line.parse(argc, argv)) return *exit_code;
  return examples::run_program("async_validation", {.storage_path = flags.storage_path, .name = flags.name},
                               [&] { return run(flags); });
}
