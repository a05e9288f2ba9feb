// The controller of a training run that cadre_soak disturbs.

#include <cadre/data_torch.h>
#include <cadre/torch.h>
#include <cadre/train_torch.h>
#include <torch/torch.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <thread>

#include "survival/controller_process.h"
#include "survival/training_setting.h"

namespace cadre::survival {
namespace fs = std::filesystem;
namespace {

// Steps and batches take longer in practice: these pauses make all kinds of workers available as victims.
constexpr auto kStepTime = std::chrono::milliseconds(20);
constexpr auto kBatchTime = std::chrono::milliseconds(10);  // per batch of a validator
constexpr std::int64_t kInputs = 8;
constexpr std::int64_t kRows = 480;
constexpr std::int64_t kRowsOfBatch = 64;
constexpr std::int64_t kWorkersOfValidator = 2;

// ---- Training

struct NetImpl : torch::nn::Module {
  torch::Tensor forward(const torch::Tensor& input) { return out(torch::tanh(norm(in(input)))); }

  torch::nn::Linear in = register_module("in", torch::nn::Linear(kInputs, 16));
  torch::nn::BatchNorm1d norm = register_module("norm", torch::nn::BatchNorm1d(16));
  torch::nn::Linear out = register_module("out", torch::nn::Linear(16, 1));
};
TORCH_MODULE(Net);

// Returns inputs that depend only on `number`.
torch::Tensor inputs_of(std::int64_t number, std::int64_t rows) {
  auto generator = at::detail::createCPUGenerator(static_cast<std::uint64_t>(number));
  return torch::randn({rows, kInputs}, generator);
}

void learn(const Config& config) {
  const train::TrainContext context = train::get_context();
  const std::int64_t rank = context.get_world_rank();
  torch::manual_seed(5);
  auto model = train::prepare_model(Net());
  torch::optim::SGD optimizer(model.parameters(), torch::optim::SGDOptions(0.05).momentum(0.9));
  std::int64_t step = 0;
  if (const auto checkpoint = train::get_checkpoint())
    step = load_state(checkpoint->path() / kStateFile, model.module(), optimizer);
  while (++step <= config.get<std::int64_t>("steps")) {
    const torch::Tensor batch = inputs_of(step * 100 + rank, 16);
    model.zero_grad();
    const torch::Tensor loss = torch::mse_loss(model(batch), batch.sum(1, /*keepdim=*/true));
    loss.backward();
    optimizer.step();
    std::this_thread::sleep_for(kStepTime);
    const Metrics metrics{{"step", step}, {"loss", loss.item<double>()}};
    if (step % config.get<std::int64_t>("checkpoint_interval") != 0) {
      train::report(metrics);
      continue;
    }
    const auto write = [&](const fs::path& directory) {  // each rank adds a file
      if (rank == 0) save_state(directory / kStateFile, model.module(), optimizer, step);
      std::ofstream(directory / file_of_rank(rank)) << step << "\n";
    };
    train::report(metrics, write, {.validation = train::ValidationTask{.config = {{"step", step}}}});
  }
}

// ---- Validation: the number of rows, unused in training, for which the sign of the sum is predicted correctly

class Judge {
 public:
  explicit Judge(const Config& config) {
    load_state(config.get<std::string>("file"), *net_);
    net_->eval();
  }

  torch::Tensor is_right(const data::TensorBatch& batch) {
    std::this_thread::sleep_for(kBatchTime);
    const torch::NoGradGuard no_gradients;
    return net_(batch.at("inputs")).flatten().gt(0).eq(batch.at("above"));
  }

  // Returns the same as a column.
  data::Batch operator()(const data::Batch& batch) {
    return data::Batch({{"right", data::to_column(is_right(data::to_tensors(batch)).to(torch::kDouble))}});
  }

 private:
  Net net_;
};

Config judge_config(const Checkpoint& checkpoint) { return {{"file", (checkpoint.path() / kStateFile).string()}}; }

Metrics count_right(double share, std::int64_t rows) {
  return {{"right", std::llround(share * static_cast<double>(rows))}, {"rows", rows}};
}

Metrics judge_simply(const Checkpoint& checkpoint, const Config& config) {
  Judge judge(judge_config(checkpoint));
  std::int64_t right = 0;
  std::int64_t rows = 0;
  for (const data::TensorBatch& batch :
       data::iter_torch_batches(data::Dataset(config.at("rows")), {.batch_size = kRowsOfBatch})) {
    right += judge.is_right(batch).sum().item<std::int64_t>();
    rows += batch.at("above").size(0);
  }
  return {{"right", right}, {"rows", rows}};
}

// Runs in every worker of a run that only evaluates.
void evaluate(const Config& config) {
  Judge judge(config);
  train::MeanMetric share;
  for (const data::TensorBatch& batch :
       data::iter_torch_batches(data::get_dataset_shard("rows"), {.batch_size = kRowsOfBatch}))
    share.update(judge.is_right(batch).to(torch::kDouble));
  train::report({{"share", share.compute()}});
}

Metrics judge_with_trainer(const Checkpoint& checkpoint, const Config& config) {
  const data::Dataset rows(config.at("rows"));
  train::TorchTrainer trainer(
      fn<evaluate>,
      {.train_loop_config = judge_config(checkpoint),
       .scaling_config = {.num_workers = kWorkersOfValidator},
       .run_config = {.name = "validation_step_" + std::to_string(config.get<std::int64_t>("step")), .verbose = 0},
       .datasets = {{"rows", rows}}});
  return count_right(trainer.fit().metrics.get<double>("share"), rows.count());
}

Metrics judge_with_map_batches(const Checkpoint& checkpoint, const Config& config) {
  const data::Dataset rows(config.at("rows"));
  const data::Dataset answers = rows.map_batches(
      data::actor<Judge>(),
      {.batch_size = kRowsOfBatch, .concurrency = kWorkersOfValidator, .constructor_config = judge_config(checkpoint)});
  return count_right(answers.mean("right"), rows.count());
}

train::ValidationConfig validation_of(Form form, const fs::path& rows) {
  train::ValidationConfig validation{
      .function = fn<judge_simply>, .config = {{"rows", data::read_parquet(rows)}}, .max_retries = -1};
  if (form == Form::simple) return validation;
  validation.resources = {.cpus = 0};
  validation.workers.bundles.assign(kWorkersOfValidator, {.cpus = 1});
  validation.function = form == Form::trainer ? train::Validator(fn<judge_with_trainer>) : fn<judge_with_map_batches>;
  return validation;
}

void write_rows(const fs::path& folder) {
  const torch::Tensor inputs = inputs_of(0, kRows);
  data::from_tensors({{"inputs", inputs}, {"above", inputs.sum(1).gt(0)}})
      .write_parquet(folder, {.max_rows_per_file = 200, .rows_per_row_group = 50});
}

PublishConfig publish_config() { return {.interval = std::chrono::milliseconds(50)}; }

train::Trainer make_trainer(const TrainingOrder& order) {
  const fs::path run = order.run;
  if (train::Trainer::can_restore(run)) return train::TorchTrainer::restore(run, {.publish_config = publish_config()});
  const TrainingSetting& setting = order.setting;
  return train::TorchTrainer(
      fn<learn>, {.train_loop_config = {{"steps", setting.steps}, {"checkpoint_interval", setting.checkpoint_interval}},
                  .scaling_config = {.num_workers = setting.workers, .placement_strategy = PlacementStrategy::spread},
                  .run_config = {.name = run.filename(),
                                 .storage_path = run.parent_path(),
                                 .publish_config = publish_config(),
                                 .failure_config = {.max_failures = -1, .max_start_failures = -1},
                                 .checkpoint_config = {.num_to_keep = setting.num_to_keep},
                                 .verbose = 0},
                  .validation = validation_of(setting.form, order.rows)});
}

}  // namespace
}  // namespace cadre::survival

int main(int argc, char** argv) {
  using namespace cadre::survival;  // NOLINT(google-build-using-namespace)
  run_controller([&] {
    const TrainingOrder order = from_arguments({argv + 1, argv + argc});
    cadre::init(argc, argv, {.num_cpus = 5});
    if (!std::filesystem::exists(order.rows)) write_rows(order.rows);
    make_trainer(order).fit();
  });
}
