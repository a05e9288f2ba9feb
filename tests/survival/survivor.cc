#include "survival/survivor.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

#include "base/system_error.h"
#include "storage/uri.h"
#include "support/temporary_directory.h"
#include "tune/session.h"

namespace cadre::survival {
namespace fs = std::filesystem;
namespace {

constexpr const char* kStateFile = "state";
constexpr const char* kWitnessFile = "witness";
constexpr const char* kRunsTwiceFile = "runs_twice";
constexpr const char* kClaimFile = "claim";
constexpr auto kTimeToDie = std::chrono::seconds(1);  // for a process that was killed

class CountsResults final : public tune::Callback {
 public:
  void on_trial_result(std::int64_t, const tune::TrialList&, const tune::TrialInfo&, Metrics&) override { ++count_; }
  Value get_state() const override { return count_; }
  void set_state(const Value& state) override { count_ = state.get<std::int64_t>(); }

 private:
  std::int64_t count_ = 0;
};

// Trials need the last item of the object, so that a truncated or wrong object is noticed.
constexpr std::size_t kTableItems = 3000;
constexpr double kSlowness = 500;

double read_slowness(const Config& config) {
  const Object table = get_object(config, "table");
  const std::span<const double> items = table.as<double>();
  if (items.size() != kTableItems || items.back() != kSlowness) throw std::runtime_error("the object is not whole");
  return items.back();
}

// Uses several writes, so that a checkpoint can be half-written.
void write_state(const fs::path& directory, const State& state) {
  std::ofstream file(directory / kStateFile);
  file << fmt::format("{} {}\n", state.step, state.score) << std::flush;
  file << fmt::format("{}\n", state.step) << std::flush;
  if (!file) throw std::runtime_error("cannot write " + (directory / kStateFile).string());
}

// Appends a line that is in the file when this returns, even after a kill. System calls bypass the C library, in which
// a test may make calls fail.
void append_line(const fs::path& path, const std::string& text) {
  const std::string line = text + "\n";
  const long fd = ::syscall(SYS_openat, AT_FDCWD, path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (fd < 0 || ::syscall(SYS_write, fd, line.data(), line.size()) != static_cast<long>(line.size()))
    throw std::runtime_error("cannot write " + path.string() + ": " + base::last_system_error());
  ::syscall(SYS_close, fd);
}

// Returns a file of a trial: in its directory, or where those of all trials are.
fs::path file_of(const fs::path& trial, const char* name) {
  const char* folder = std::getenv(kWitnessesVariable);
  return folder == nullptr ? trial / name : fs::path(folder) / (trial.filename().string() + "_" + name);
}

void bear_witness(const fs::path& trial, std::int64_t attempt, std::int64_t step) {
  append_line(file_of(trial, kWitnessFile), fmt::format("{} {}", attempt, step));
}

// Keeps the trial for this process until it ends, on nodes. Bears witness if another process of the trial runs, of this
// controller or of one before. A process that was killed a moment ago may take a while to end.
void claim(const fs::path& trial, std::int64_t attempt) {
  if (std::getenv(kClaimVariable) == nullptr) return;
  const std::string path = file_of(trial, kClaimFile);
  const long fd = ::syscall(SYS_openat, AT_FDCWD, path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  const auto until = std::chrono::steady_clock::now() + kTimeToDie;
  while (::syscall(SYS_flock, fd, LOCK_EX | LOCK_NB) != 0) {
    if (std::chrono::steady_clock::now() >= until)
      return append_line(file_of(trial, kRunsTwiceFile), std::to_string(attempt));
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

void report(const State& state, const Config& config) {
  const Metrics metrics{{"score", state.score}, {"lr", config.get<double>("lr")}};
  if (!config.get<bool>("copied"))
    return tune::report(metrics, [&](const fs::path& directory) { write_state(directory, state); });
  if (state.step % config.get<std::int64_t>("checkpoint_interval") != 0) return tune::report(metrics);
  const fs::path own = tune::get_context().get_trial_dir() / "own";
  fs::create_directories(own);
  write_state(own, state);
  tune::report(metrics, Checkpoint::from_directory(own));
}

// Starts a program that ends with the worker's process group.
void start_program(const Config& config) {
  if (!config.get<bool>("has_programs") || ::fork() != 0) return;
  ::execlp("sleep", "sleep", "100000", nullptr);
  ::_exit(127);
}

}  // namespace

std::string Setting::text() const {
  return fmt::format(
      "synch {}, population {}, steps {}, interval {}, checkpoint_interval {}, copied {}, is_class {}, num_to_keep {}, "
      "max_failures {}, has_programs {}",
      synch, population, steps, interval, checkpoint_interval, copied, is_class, num_to_keep, max_failures,
      has_programs);
}

ObjectRef put_table() {
  std::vector<double> items(kTableItems);
  items.back() = kSlowness;
  return put(items);
}

// Returns the name of an experiment that is given as a path, or as a URI whose options follow its name.
std::string name_in_storage(const fs::path& experiment) {
  if (!storage::is_uri(experiment.native())) return experiment.filename();
  return name_of(storage::parse_uri(experiment.native()));
}
std::string storage_of(const fs::path& experiment) {
  if (!storage::is_uri(experiment.native())) return experiment.parent_path();
  return to_string(parent_of(storage::parse_uri(experiment.native())));
}

tune::TunerOptions options_of(const Setting& setting, const fs::path& experiment, const ObjectRef& table) {
  const tune::PopulationBasedTraining pbt{.time_attr = "training_iteration",
                                          .metric = tune::maximize("score"),
                                          .perturbation_interval = static_cast<double>(setting.interval),
                                          .hyperparam_mutations = {{"lr", tune::uniform(0.01, 1)}},
                                          .quantile_fraction = 0.4,
                                          .synch = setting.synch};
  return {
      .param_space = {{"lr", tune::uniform(0.01, 1)},
                      {"checkpoint_interval", setting.checkpoint_interval},
                      {"copied", setting.copied},
                      {"has_programs", setting.has_programs},
                      {"table", table}},
      .tune_config = {.num_samples = setting.population, .scheduler = pbt, .seed = 7},
      .run_config = {.name = name_in_storage(experiment),
                     .storage_path = storage_of(experiment),
                     .publish_config = publish_config(),
                     .stop = {{"training_iteration", static_cast<double>(setting.steps)}},
                     .checkpoint_config = {.num_to_keep = setting.num_to_keep,
                                           .checkpoint_frequency = setting.is_class ? 0 : setting.checkpoint_interval,
                                           .checkpoint_at_end = true},
                     .failure_config = {.max_failures = setting.max_failures},
                     .verbose = setting.verbose,
                     .callbacks = callbacks()}};
}

tune::Trainable trainable_of(const Setting& setting) {
  return setting.is_class ? tune::trainable<SurvivorClass>() : fn<survivor>;
}

PublishConfig publish_config() { return {.interval = std::chrono::milliseconds(50)}; }

tune::Callbacks callbacks() { return {std::make_shared<CountsResults>()}; }

void survivor(const Config& config) {
  start_program(config);
  State state;
  if (const auto checkpoint = tune::get_checkpoint()) {
    const auto found = read_state(checkpoint->path());
    if (!found) throw std::runtime_error("the checkpoint " + checkpoint->path().string() + " is not whole");
    state = *found;
  }
  const fs::path trial = tune::get_context().get_trial_dir();
  const std::int64_t attempt = tune::Session::current()->assignment().attempt;
  claim(trial, attempt);
  const double slowness = read_slowness(config);
  for (;;) {
    ++state.step;
    state.score += config.get<double>("lr") * (1 - state.score) / slowness;  // no two trials get equal scores
    report(state, config);
    bear_witness(trial, attempt, state.step);
  }
}

void SurvivorClass::setup(const Config& config) {
  start_program(config);
  claim(tune::get_context().get_trial_dir(), tune::Session::current()->assignment().attempt);
  slowness_ = read_slowness(config);
}

// report() has returned when this is called, so the witness is of the step before.
Metrics SurvivorClass::step() {
  const tune::Session& session = *tune::Session::current();
  if (session.reports() > 0)
    bear_witness(tune::get_context().get_trial_dir(), session.assignment().attempt, training_iteration());
  ++step_;
  score_ += get_config().get<double>("lr") * (1 - score_) / slowness_;
  return {{"score", score_}, {"lr", get_config().get<double>("lr")}};
}

void SurvivorClass::save_checkpoint(const fs::path& directory) { write_state(directory, {step_, score_}); }

void SurvivorClass::load_checkpoint(const fs::path& directory) {
  const auto found = read_state(directory);
  if (!found) throw std::runtime_error("the checkpoint " + directory.string() + " is not whole");
  step_ = found->step;
  score_ = found->score;
}

std::optional<State> read_state(const fs::path& checkpoint) {
  std::ifstream file(checkpoint / kStateFile);
  State state;
  std::int64_t again = 0;
  if (!(file >> state.step >> state.score >> again) || again != state.step) return std::nullopt;
  return state;
}

std::vector<Witness> read_witnesses(const fs::path& trial) {
  std::ifstream file(file_of(trial, kWitnessFile));
  std::vector<Witness> witnesses;
  for (Witness one; file >> one.attempt >> one.step;) witnesses.push_back(one);
  return witnesses;
}

bool has_run_twice(const fs::path& trial) { return fs::exists(file_of(trial, kRunsTwiceFile)); }

std::int64_t last_step(const fs::path& trial) {
  constexpr std::streamoff enough = 64;  // for the last line, whose last word is the step
  std::ifstream file(file_of(trial, kWitnessFile), std::ios::ate);
  if (!file) return 0;
  file.seekg(std::max<std::streamoff>(0, file.tellg() - enough));
  std::int64_t step = 0;
  for (std::string word; file >> word;) step = std::atoll(word.c_str());
  return step;
}

}  // namespace cadre::survival
