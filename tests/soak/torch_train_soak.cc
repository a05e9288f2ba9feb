// Kills ranks, fork servers and controllers of small training runs at random moments, and continues them: each must
// come to the same results and, bit for bit, to the same parameters as one that nothing disturbs. `cadre_train_soak
// --help` says how to run it.
#include <cadre/torch.h>
#include <cadre/train_torch.h>
#include <signal.h>
#include <torch/torch.h>

#include <CLI/CLI.hpp>
#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/json.h"
#include "store/experiment_reader.h"
#include "survival/controller_process.h"

namespace cadre::survival {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr auto kPatience = std::chrono::seconds(120);
constexpr const char* kOption = "--training-controller";
constexpr const char* kStateFile = "model.pt";

// ---- What is killed

struct Setting {
  std::int64_t workers = 2;
  std::int64_t steps = 40;
  std::int64_t checkpoint_interval = 1;
  std::int64_t num_to_keep = 1;
};

Setting setting_of(std::int64_t number) {
  return {.workers = 1 + number % 3, .checkpoint_interval = 1 + number % 4, .num_to_keep = 1 + number % 2};
}

struct NetImpl : torch::nn::Module {
  torch::Tensor forward(const torch::Tensor& input) { return out(torch::tanh(norm(in(input)))); }

  torch::nn::Linear in = register_module("in", torch::nn::Linear(8, 16));
  torch::nn::BatchNorm1d norm = register_module("norm", torch::nn::BatchNorm1d(16));
  torch::nn::Linear out = register_module("out", torch::nn::Linear(16, 1));
};
TORCH_MODULE(Net);

// The batch of a rank in a step: the same whenever it is asked for.
torch::Tensor batch_of(std::int64_t step, std::int64_t rank) {
  auto generator = at::detail::createCPUGenerator(static_cast<std::uint64_t>(step * 100 + rank));
  return torch::randn({16, 8}, generator);
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
    const torch::Tensor batch = batch_of(step, rank);
    model.zero_grad();
    const torch::Tensor loss = torch::mse_loss(model(batch), batch.sum(1, /*keepdim=*/true));
    loss.backward();
    optimizer.step();
    const Metrics metrics{{"step", step}, {"loss", loss.item<double>()}};
    if (step % config.get<std::int64_t>("checkpoint_interval") != 0) {
      train::report(metrics);
      continue;
    }
    const auto write = [&](const fs::path& directory) {  // each rank adds a file
      if (rank == 0) save_state(directory / kStateFile, model.module(), optimizer, step);
      std::ofstream(directory / ("rank_" + std::to_string(rank))) << step << "\n";
    };
    train::report(metrics, write, {.validation = true});
  }
}

// The loss on a batch that nobody trains with.
Metrics judge(const Checkpoint& checkpoint) {
  Net net;
  torch::optim::SGD optimizer(net->parameters(), torch::optim::SGDOptions(0.05).momentum(0.9));
  load_state(checkpoint.path() / kStateFile, net, optimizer);
  net->eval();
  const torch::NoGradGuard no_gradients;
  const torch::Tensor batch = batch_of(0, 0);
  return {{"validation_loss", torch::mse_loss(net(batch), batch.sum(1, /*keepdim=*/true)).item<double>()}};
}

// ---- Its controller, in a process of its own

[[noreturn]] void run_training(int argc, char** argv) {
  const fs::path run = argv[2];
  const auto number = [&](int index) { return std::atoll(argv[index]); };
  run_controller([&] {
    cadre::init(argc, argv, {.num_cpus = 4});
    if (train::Trainer::can_restore(run)) {
      train::TorchTrainer::restore(run).fit();
      return;
    }
    train::TorchTrainer trainer(train::loop<learn>(),
                                {.train_loop_config = {{"steps", number(4)}, {"checkpoint_interval", number(5)}},
                                 .scaling_config = {.num_workers = number(3)},
                                 .run_config = {.name = run.filename(),
                                                .storage_path = run.parent_path(),
                                                .failure_config = {.max_failures = -1},
                                                .checkpoint_config = {.num_to_keep = number(6)},
                                                .verbose = 0},
                                 .validation = {.function = train::validator<judge>(), .max_retries = -1}});
    trainer.fit();
  });
}

ControllerProcess start(const fs::path& run, const Setting& setting) {
  return {{kOption, run.string(), std::to_string(setting.workers), std::to_string(setting.steps),
           std::to_string(setting.checkpoint_interval), std::to_string(setting.num_to_keep)},
          {},
          run.string() + ".said"};
}

// ---- What must be true

std::string content_of(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

struct Outcome {
  std::vector<Metrics> history;
  std::string state;                                // the last checkpoint's
  std::vector<Metrics> validated;                   // the kept checkpoints'
  std::map<std::string, std::int64_t> validations;  // how often one was finished, by checkpoint
};

Outcome outcome_of(const fs::path& run) {
  const train::Result result = train::Result::from_directory(run);
  if (!result.checkpoint) throw std::runtime_error("there is no checkpoint");
  Outcome outcome;
  outcome.history = result.metrics_history;
  outcome.state = content_of(result.checkpoint->path() / kStateFile);
  for (const train::ReportedCheckpoint& one : result.best_checkpoints) {
    if (one.status == train::ReportedCheckpointStatus::validated) outcome.validated.push_back(one.validation_metrics);
  }
  const store::ExperimentReader reader(run, store::ExperimentReader::Check::rows);
  reader.visit(
      {.result = [](const store::ResultRow&) {},
       .event = [](const store::EventRow&) {},
       .decision =
           [&](const store::DecisionRow& row) {
             if (row.kind != "settle_validation") return;
             const Config data(base::parse_json(row.data, "a decision").dict());
             ++outcome.validations[data.get<std::string>("checkpoint") + " " + data.get<std::string>("status")];
           }});
  return outcome;
}

// Whether result.json has each of these results in a line, with more behind what was reported.
bool are_in_result_file(const std::vector<Metrics>& history, const fs::path& run) {
  std::ifstream rows(run / "result.json");
  std::size_t matches = 0;
  for (std::string line; std::getline(rows, line); ++matches) {
    if (matches == history.size()) return false;
    const std::string reported = to_json(history[matches].dict());
    if (!line.starts_with(reported.substr(0, reported.size() - 1) + ", \"timestamp\"")) return false;
  }
  return matches == history.size();
}

// Each fault in a line.
std::vector<std::string> faults_of(const fs::path& run, const Setting& setting, const Outcome& undisturbed) {
  std::vector<std::string> faults;
  const Outcome outcome = outcome_of(run);
  if (std::ssize(outcome.history) != setting.steps)
    faults.push_back(std::to_string(outcome.history.size()) + " results instead of " + std::to_string(setting.steps));
  if (outcome.history != undisturbed.history) faults.emplace_back("the results are others than undisturbed");
  if (!are_in_result_file(outcome.history, run)) faults.emplace_back("result.json has other results than the store");
  if (outcome.state != undisturbed.state) faults.emplace_back("the parameters are others than undisturbed");
  if (outcome.validated != undisturbed.validated || std::ssize(outcome.validated) != setting.num_to_keep)
    faults.emplace_back("the validations of the kept checkpoints are others than undisturbed");
  if (std::ssize(outcome.validations) < setting.steps / setting.checkpoint_interval)
    faults.push_back("only " + std::to_string(outcome.validations.size()) + " validations were finished");
  for (const auto& [validation, times] : outcome.validations) {
    if (times != 1 || !validation.ends_with(" validated"))
      faults.push_back(validation + ": recorded " + std::to_string(times) + " times");
  }
  std::int64_t kept = 0;
  for (const auto& entry : fs::directory_iterator(run)) {
    const std::string name = entry.path().filename();
    if (name.starts_with(".reporting_")) faults.push_back(name + " was left");
    if (!name.starts_with("checkpoint_")) continue;
    ++kept;
    for (std::int64_t rank = 0; rank < setting.workers; ++rank) {
      if (!fs::exists(entry.path() / ("rank_" + std::to_string(rank))))
        faults.push_back(name + " lacks the file of rank " + std::to_string(rank));
    }
  }
  if (kept != std::min(setting.num_to_keep, setting.steps / setting.checkpoint_interval))
    faults.push_back(std::to_string(kept) + " checkpoints are kept");
  return faults;
}

// ---- The soak

enum class Victim { controller, server, rank };

struct Options {
  std::int64_t kills = 100;
  std::uint64_t seed = std::random_device()();
  fs::path directory = {};
};

class Soak {
 public:
  explicit Soak(const Options& options) : options_(options), random_(options.seed) {}

  // Returns whether all was well.
  bool run() {
    std::vector<std::string> faults;
    for (; all_kills() < options_.kills && faults.empty(); ++runs_) {
      faults = disturb(options_.directory / ("run_" + std::to_string(runs_)), setting_of(runs_));
      for (const std::string& fault : faults) std::cout << "run " << runs_ << ": " << fault << "\n";
    }
    std::cout << "seed " << options_.seed << ": " << all_kills() << " kills: " << kills_[0] << " controllers, "
              << kills_[1] << " servers, " << kills_[2] << " ranks; " << restores_ << " restores in " << runs_
              << " runs; " << (faults.empty() ? "all well" : "FAILED, kept in " + options_.directory.string())
              << std::endl;
    return faults.empty();
  }

 private:
  std::int64_t all_kills() const { return kills_[0] + kills_[1] + kills_[2]; }

  std::vector<std::string> disturb(const fs::path& run, const Setting& setting) {
    const fs::path quiet = run.string() + "_undisturbed";
    if (const auto ended = start(quiet, setting).wait(kPatience); !ended || ended->code != Ended::finished)
      return {"undisturbed it does not end well: " + (ended ? ended->message : "it hangs")};
    for (;;) {
      ControllerProcess controller = start(run, setting);
      const bool killed = kill_in(controller);
      const auto ended = controller.wait(kPatience);
      if (!ended) return {"the controller hangs"};
      if (ended->code == Ended::finished) break;
      if (!killed || (ended->code != -SIGKILL && ended->code != Ended::engine_error))
        return {"the controller ended with code " + std::to_string(ended->code) + ": " + ended->message};
      ++restores_;
    }
    std::vector<std::string> faults = still_running(std::chrono::seconds(20));
    if (faults.empty()) faults = faults_of(run, setting, outcome_of(quiet));
    return faults;
  }

  // Until the controller or its server was killed, or it has ended. Returns whether it was.
  bool kill_in(const ControllerProcess& controller) {
    while (all_kills() < options_.kills) {
      const auto moment = Clock::now() + std::chrono::duration<double>(uniform(0, 1));
      while (Clock::now() < moment) {
        if (controller.has_ended()) return false;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      const double whom = uniform(0, 1);
      const Victim victim = whom < 0.3 ? Victim::controller : whom < 0.5 ? Victim::server : Victim::rank;
      const std::vector<pid_t> candidates = victim == Victim::controller ? std::vector{controller.process()}
                                            : victim == Victim::server   ? controller.server()
                                                                         : controller.workers();
      if (candidates.empty() || controller.has_ended()) continue;
      ::kill(candidates[static_cast<std::size_t>(uniform(0, static_cast<double>(candidates.size())))], SIGKILL);
      ++kills_[static_cast<std::size_t>(victim)];
      if (victim != Victim::rank) return true;
    }
    return false;
  }

  double uniform(double lower, double upper) { return std::uniform_real_distribution(lower, upper)(random_); }

  const Options& options_;
  std::mt19937_64 random_;
  std::array<std::int64_t, 3> kills_ = {};
  std::int64_t runs_ = 0;
  std::int64_t restores_ = 0;
};

}  // namespace
}  // namespace cadre::survival

int main(int argc, char** argv) {
  using namespace cadre::survival;  // NOLINT(google-build-using-namespace)
  if (argc > 6 && std::string_view(argv[1]) == kOption) run_training(argc, argv);
  Options options;
  CLI::App app("cadre_train_soak: kills training runs at random moments, and checks that they come out the same");
  app.add_option("--kills", options.kills, "how many kills")->capture_default_str();
  app.add_option("--seed", options.seed, "of whom and when; the moments also depend on the machine (default: drawn)");
  app.add_option("--directory", options.directory, "where runs live (default: a new one, which goes if all is well)");
  CLI11_PARSE(app, argc, argv);
  try {
    if (options.directory.empty()) {
      std::string name = (std::filesystem::temp_directory_path() / "cadre_train_soak_XXXXXX").string();
      if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make the directory " + name);
      options.directory = name;
    }
    adopt_orphans();
    if (!Soak(options).run()) return 1;
    std::filesystem::remove_all(options.directory);
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "cadre_train_soak: " << error.what() << "\n";
    return 2;
  }
}
