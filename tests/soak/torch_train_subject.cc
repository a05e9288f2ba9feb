#include "torch_train_subject.h"

#include <cadre/data_torch.h>
#include <cadre/torch.h>
#include <cadre/train_torch.h>
#include <torch/torch.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <string_view>
#include <thread>

namespace cadre::survival {
namespace fs = std::filesystem;
namespace {

constexpr const char* kOption = "--training-controller";
// What takes longer in practice, so that all of them are found at work.
constexpr auto kStepTime = std::chrono::milliseconds(20);
constexpr auto kBatchTime = std::chrono::milliseconds(10);  // of a validator
constexpr std::int64_t kInputs = 8;
constexpr std::int64_t kRows = 480;
constexpr std::int64_t kRowsOfBatch = 64;
constexpr std::int64_t kWorkersOfValidator = 2;

// ---- What is trained

struct NetImpl : torch::nn::Module {
  torch::Tensor forward(const torch::Tensor& input) { return out(torch::tanh(norm(in(input)))); }

  torch::nn::Linear in = register_module("in", torch::nn::Linear(kInputs, 16));
  torch::nn::BatchNorm1d norm = register_module("norm", torch::nn::BatchNorm1d(16));
  torch::nn::Linear out = register_module("out", torch::nn::Linear(16, 1));
};
TORCH_MODULE(Net);

// Of a number the same whenever they are asked for.
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

// ---- How it is judged: for how many rows, with which nobody trains, is the sum's sign told rightly?

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

  // The same as a column.
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

// In every worker of a run that only evaluates.
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
      train::loop<evaluate>(),
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
      .function = train::validator<judge_simply>(), .config = {{"rows", data::read_parquet(rows)}}, .max_retries = -1};
  if (form == Form::simple) return validation;
  validation.resources = {.cpus = 0};
  validation.workers.bundles.assign(kWorkersOfValidator, {.cpus = 1});
  validation.function =
      form == Form::trainer ? train::validator<judge_with_trainer>() : train::validator<judge_with_map_batches>();
  return validation;
}

}  // namespace

std::string TrainingSetting::text() const {
  return std::string("validator ") + kForms.at(static_cast<std::size_t>(form)) + ", workers " +
         std::to_string(workers) + ", steps " + std::to_string(steps) + ", checkpoint_interval " +
         std::to_string(checkpoint_interval) + ", num_to_keep " + std::to_string(num_to_keep);
}

std::string file_of_rank(std::int64_t rank) { return "rank_" + std::to_string(rank); }

void write_rows(const fs::path& folder) {
  const torch::Tensor inputs = inputs_of(0, kRows);
  data::from_tensors({{"inputs", inputs}, {"above", inputs.sum(1).gt(0)}})
      .write_parquet(folder, {.max_rows_per_file = 200, .rows_per_row_group = 50});
}

// ---- Its controller, in a process of its own

ControllerProcess start_training(const fs::path& run, const TrainingSetting& setting, const fs::path& rows,
                                 const fs::path& temporary) {
  std::vector<std::string> arguments{kOption, run.string(), rows.string()};
  for (const std::int64_t number : {static_cast<std::int64_t>(setting.form), setting.workers, setting.steps,
                                    setting.checkpoint_interval, setting.num_to_keep})
    arguments.push_back(std::to_string(number));
  return {std::move(arguments), {"TMPDIR=" + temporary.string()}, run.string() + ".said"};
}

void run_if_training(int argc, char** argv) {
  if (argc != 9 || std::string_view(argv[1]) != kOption) return;
  const fs::path run = argv[2];
  const auto number = [&](int index) { return std::atoll(argv[index]); };
  run_controller([&] {
    cadre::init(argc, argv, {.num_cpus = 5});
    if (train::Trainer::can_restore(run)) {
      train::TorchTrainer::restore(run).fit();
      return;
    }
    train::TorchTrainer trainer(train::loop<learn>(),
                                {.train_loop_config = {{"steps", number(6)}, {"checkpoint_interval", number(7)}},
                                 .scaling_config = {.num_workers = number(5)},
                                 .run_config = {.name = run.filename(),
                                                .storage_path = run.parent_path(),
                                                .failure_config = {.max_failures = -1},
                                                .checkpoint_config = {.num_to_keep = number(8)},
                                                .verbose = 0},
                                 .validation = validation_of(static_cast<Form>(number(4)), argv[3])});
    trainer.fit();
  });
}

}  // namespace cadre::survival
