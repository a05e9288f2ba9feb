// Kills controllers, fork servers and workers of small experiments at random moments, signals and stops all of their
// processes, continues them, and looks at what is left, with every reader. `cadre_soak --help` says how to run it.
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <map>
#include <numeric>
#include <random>
#include <span>
#include <stdexcept>
#include <string_view>
#include <thread>

#include "survival/controller_process.h"
#include "survival/invariants.h"

namespace cadre::survival {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::duration<double, std::milli>;

constexpr auto kPatience = std::chrono::seconds(60);
constexpr auto kPollInterval = std::chrono::microseconds(300);
constexpr int kSettings = 24;

constexpr const char* kHelp =
    "cadre_soak: kills experiments, and signals and stops them, at random moments, and checks that nothing "
    "acknowledged\n"
    "is lost and nothing is left\n"
    "  --kills <n>       how many kills, signals and stops (default 1000)\n"
    "  --seed <n>        of everything that is random here (default: drawn); the moments also depend on the machine\n"
    "  --first <n>       the experiment to begin with (default 0), to repeat one that failed\n"
    "  --directory <d>   where experiments live (default: a new one below the system's temporary directory)\n"
    "  --go-on           after a failure too\n";

struct Options {
  std::int64_t kills = 1000;
  std::uint64_t seed = std::random_device()();
  std::int64_t first = 0;
  fs::path directory = {};
  bool go_on = false;
};

enum class Victim {
  controller,
  server,
  worker,
  both,      // controller and server in one instant
  everyone,  // gets a signal that asks it to end
  stopped,   // all are, for a time
};
constexpr std::array<const char*, 6> kVictimNames{"controller kills", "server kills",   "worker kills",
                                                  "kills of both",    "signals to all", "stops of all"};

class Random {
 public:
  Random(std::uint64_t seed, std::uint64_t stream) {
    std::seed_seq words{seed, seed >> 32, stream};
    engine_.seed(words);
  }
  double uniform(double lower, double upper) { return std::uniform_real_distribution(lower, upper)(engine_); }
  bool chance(double probability) { return uniform(0, 1) < probability; }
  std::size_t below(std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(engine_); }

 private:
  std::mt19937_64 engine_;
};

Setting setting_of(int number) {
  Setting setting{.synch = number % 2 == 0};
  setting.population = 2 + number % 7;
  setting.num_to_keep = 1 + number % 4;
  setting.checkpoint_interval = number % 3 == 0 ? 2 : 1;
  setting.is_class = number % 4 == 3;
  setting.copied = number % 5 == 0 && !setting.is_class;
  setting.max_failures = number % 3 - 1;  // without limit, none, one
  setting.has_programs = number % 4 == 1;
  if (number == 0 || number == kSettings - 1) {  // long enough for a snapshot
    setting.population = 8;
    setting.steps = 720;
    setting.interval = 60;
    setting.checkpoint_interval = 20;
  }
  return setting;
}

// What was done and seen in all experiments.
struct Tally {
  std::array<std::int64_t, kVictimNames.size()> kills = {};
  std::int64_t experiments = 0;
  std::int64_t restores = 0;
  std::int64_t failed_experiments = 0;
  Milliseconds time_to_restore{0};  // from the program's start to its first worker, in all
  std::int64_t restores_timed = 0;

  std::int64_t all_kills() const { return std::reduce(kills.begin(), kills.end()); }
};

// When to kill, and whom.
struct Plan {
  Victim victim = Victim::controller;
  Milliseconds after{0};   // the controller's start, or the last kill
  double at_progress = 0;  // 0 to 1 of all steps; then `after`
};

class Experiment {
 public:
  Experiment(const Options& options, std::int64_t number, Tally& tally, std::map<int, Outcome>& undisturbed);

  // What went wrong, a line each.
  std::vector<std::string> run();

 private:
  struct Life {
    ControllerProcess controller;
    Clock::time_point began = Clock::now();
    bool restores = false;
    bool timed = false;   // or need not be
    bool mortal = false;  // its controller or server was killed
    int signal = 0;       // that all of its processes got
  };

  void live();
  void follow(Life& life, const Plan& plan);
  void kill(Life& life, Victim victim);
  void take_end(const Life& life, const Ended& ended);
  void check(bool finished);
  void look();
  void signal_all(Life& life);
  void stop_all(const Life& life);
  void restore_once_more();
  Plan draw_plan();
  double progress() const;
  void wait_for_the_dead();
  const Outcome& undisturbed();

  const Options& options_;
  Tally& tally_;
  std::map<int, Outcome>& undisturbed_;
  Random random_;
  int setting_number_;
  Setting setting_;
  fs::path directory_;
  std::int64_t worker_kills_ = 0;
  bool finished_ = false;
  std::vector<std::string> faults_;
};

Experiment::Experiment(const Options& options, std::int64_t number, Tally& tally, std::map<int, Outcome>& undisturbed)
    : options_(options),
      tally_(tally),
      undisturbed_(undisturbed),
      random_(options.seed, static_cast<std::uint64_t>(number)),
      setting_number_(static_cast<int>(number % kSettings)),
      setting_(setting_of(setting_number_)),
      directory_(options.directory / fmt::format("experiment_{}", number)) {
  fs::remove_all(directory_);  // of an earlier soak in the same place
}

std::vector<std::string> Experiment::run() {
  ++tally_.experiments;
  while (!finished_ && faults_.empty()) live();
  if (faults_.empty()) wait_for_the_dead();
  if (faults_.empty()) check(true);
  if (faults_.empty() && random_.chance(0.25)) restore_once_more();
  if (!faults_.empty()) faults_.insert(faults_.begin(), setting_.text());
  return std::move(faults_);
}

// One controller's life, from its start to its end.
void Experiment::live() {
  const bool restores = tune::Tuner::can_restore(directory_);
  Life life{.controller = ControllerProcess({.experiment = directory_,
                                             .setting = setting_,
                                             .slots = static_cast<int>(1 + random_.below(4)),
                                             .environment = {}}),
            .restores = restores,
            .timed = random_.chance(0.8)};  // to look for workers costs more than all the rest
  if (restores) ++tally_.restores;
  while (!life.mortal && life.signal == 0 && tally_.all_kills() < options_.kills) {
    const Plan plan = draw_plan();
    follow(life, plan);
    if (const auto ended = life.controller.wait(std::chrono::nanoseconds(0))) return take_end(life, *ended);
    kill(life, plan.victim);
  }
  const auto ended = life.controller.wait(kPatience);
  if (!ended) return faults_.push_back("the controller hangs");
  take_end(life, *ended);
}

// All phases are to be hit: the first milliseconds, anything in between, the end.
Plan Experiment::draw_plan() {
  Plan plan;
  const bool spare_workers = setting_.synch && setting_.max_failures >= 0;
  const double whom = random_.uniform(0, 1);
  plan.victim = whom < 0.3                     ? Victim::controller
                : whom < 0.4                   ? Victim::both
                : whom < 0.55                  ? Victim::everyone
                : whom < 0.6                   ? Victim::stopped
                : whom < 0.75 || spare_workers ? Victim::server
                                               : Victim::worker;
  const double when = random_.uniform(0, 1);
  if (when < 0.35) {
    plan.after = Milliseconds(std::exp(random_.uniform(std::log(0.1), std::log(40))));
  } else if (when < 0.85) {
    plan.after = Milliseconds(random_.uniform(0, setting_.steps > 100 ? 1500 : 150));
  } else {
    plan.at_progress = random_.uniform(0.6, 1);
    plan.after = Milliseconds(random_.uniform(0, 10));
  }
  return plan;
}

// Until the moment has come, or the controller has ended.
void Experiment::follow(Life& life, const Plan& plan) {
  const auto reached = [&] { return plan.at_progress == 0 || progress() >= plan.at_progress; };
  std::optional<Clock::time_point> moment;
  for (const auto give_up = Clock::now() + kPatience; Clock::now() < give_up;) {
    if (!moment && reached()) moment = Clock::now() + std::chrono::duration_cast<Clock::duration>(plan.after);
    if (moment && Clock::now() >= *moment) return;
    if (life.restores && !life.timed && !life.controller.workers().empty()) {
      life.timed = true;
      ++tally_.restores_timed;
      tally_.time_to_restore += Clock::now() - life.began;
    }
    const auto nap = moment ? std::min<Clock::duration>(kPollInterval, *moment - Clock::now()) : kPollInterval;
    if (life.controller.has_ended()) return;
    std::this_thread::sleep_for(nap);
  }
}

void Experiment::kill(Life& life, Victim victim) {
  if (victim == Victim::everyone || victim == Victim::stopped) {
    ++tally_.kills[static_cast<std::size_t>(victim)];
    return victim == Victim::everyone ? signal_all(life) : stop_all(life);
  }
  if (victim == Victim::both) {
    const std::vector<pid_t> server = life.controller.server();
    if (server.empty()) return;
    for (const int signal : {SIGSTOP, SIGKILL}) {
      life.controller.kill(signal);
      ::kill(server.front(), signal);
    }
    ++tally_.kills[static_cast<std::size_t>(victim)];
    life.mortal = true;
    return;
  }
  const std::vector<pid_t> candidates = victim == Victim::controller ? std::vector{life.controller.process()}
                                        : victim == Victim::server   ? life.controller.server()
                                                                     : life.controller.workers();
  if (candidates.empty()) return;
  ::kill(candidates[random_.below(candidates.size())], SIGKILL);
  ++tally_.kills[static_cast<std::size_t>(victim)];
  if (victim == Victim::worker) {
    ++worker_kills_;
  } else {
    life.mortal = true;
  }
}

// As service managers and batch systems do, in any order.
void Experiment::signal_all(Life& life) {
  constexpr std::array signals{SIGTERM, SIGTERM, SIGHUP, SIGINT};
  life.signal = signals[random_.below(signals.size())];
  std::vector<pid_t> family = life.controller.family();
  if (random_.chance(0.5)) std::ranges::reverse(family);
  for (const pid_t process : family) ::kill(process, life.signal);
}

void Experiment::stop_all(const Life& life) {
  const std::vector<pid_t> family = life.controller.family();
  for (const pid_t process : family) ::kill(process, SIGSTOP);
  std::this_thread::sleep_for(Milliseconds(random_.uniform(0, 200)));
  for (const pid_t process : family) ::kill(process, SIGCONT);
}

void Experiment::take_end(const Life& life, const Ended& ended) {
  finished_ = ended.code == Ended::finished;
  const bool interrupted = life.signal != 0 && (ended.code == Ended::interrupted || ended.code == -life.signal);
  const bool expected =
      finished_ || interrupted || (life.mortal && (ended.code == -SIGKILL || ended.code == Ended::engine_error));
  if (!expected)
    faults_.push_back(fmt::format("the controller {} ended with code {}: {}",
                                  life.restores ? "that restores" : "that begins", ended.code, ended.message));
  if (finished_ || !faults_.empty()) return;
  // A person who starts the program again at once is as good as one who waits.
  if (random_.chance(0.5)) wait_for_the_dead();
  if (!tune::Tuner::can_restore(directory_)) return;
  look();
  if (faults_.empty() && random_.chance(0.5)) check(false);
}

// With every reader; the program takes longer than all the rest.
void Experiment::look() { faults_ = faults_of_readers(directory_, setting_, random_.chance(0.1) ? CADRE_PROGRAM : ""); }

void Experiment::wait_for_the_dead() {
  for (const std::string& process : still_running(std::chrono::seconds(20))) faults_.push_back(process + " runs on");
}

void Experiment::check(bool finished) {
  Expectation expectation{.finished = finished, .worker_deaths = worker_kills_, .outcome = {}};
  if (finished && setting_.synch) expectation.outcome = undisturbed();
  faults_ = faults_of(directory_, setting_, expectation);
}

// Of an experiment that has ended: changes nothing.
void Experiment::restore_once_more() {
  ControllerProcess controller({.experiment = directory_, .setting = setting_, .environment = {}});
  const auto ended = controller.wait(kPatience);
  if (!ended || ended->code != Ended::finished)
    return faults_.push_back("the ended experiment cannot be restored: " + (ended ? ended->message : "it hangs"));
  check(true);
}

double Experiment::progress() const {
  std::int64_t steps = 0;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(directory_, none)) {
    if (entry.is_directory(none)) steps += last_step(entry.path());
  }
  return static_cast<double>(steps) / static_cast<double>(setting_.population * setting_.steps);
}

// Made by a run in which nothing is killed, when it is first asked for.
const Outcome& Experiment::undisturbed() {
  if (const auto found = undisturbed_.find(setting_number_); found != undisturbed_.end()) return found->second;
  const fs::path directory = options_.directory / fmt::format("undisturbed_{}", setting_number_);
  fs::remove_all(directory);
  ControllerProcess controller({.experiment = directory, .setting = setting_, .environment = {}});
  const auto ended = controller.wait(kPatience);
  if (!ended || ended->code != Ended::finished)
    throw std::runtime_error("an undisturbed experiment does not end well: " + (ended ? ended->message : "it hangs"));
  return undisturbed_[setting_number_] = outcome_of(directory);
}

void say_summary(const Tally& tally) {
  fmt::print("{} kills and signals", tally.all_kills());
  for (std::size_t i = 0; i < kVictimNames.size(); ++i)
    fmt::print("{} {} {}", i == 0 ? ":" : ",", tally.kills[i], kVictimNames[i]);
  fmt::print("; {} restores in {} experiments, {:.1f} ms to the first worker of a restore; {} failed\n", tally.restores,
             tally.experiments,
             tally.time_to_restore.count() / static_cast<double>(std::max<std::int64_t>(1, tally.restores_timed)),
             tally.failed_experiments);
  std::fflush(stdout);
}

void say_failure(const Options& options, std::int64_t number, const std::vector<std::string>& faults) {
  for (const std::string& fault : faults) fmt::print("{}\n", fault);
  fmt::print("experiment {} FAILED; it is kept in {}. To try it again: cadre_soak --seed {} --first {}\n", number,
             (options.directory / fmt::format("experiment_{}", number)).string(), options.seed, number);
  std::fflush(stdout);
}

int soak(const Options& options) {
  Tally tally;
  std::map<int, Outcome> undisturbed;
  std::int64_t lines = 0;
  for (std::int64_t number = options.first; tally.all_kills() < options.kills; ++number) {
    const std::vector<std::string> faults = Experiment(options, number, tally, undisturbed).run();
    const fs::path directory = options.directory / fmt::format("experiment_{}", number);
    if (faults.empty()) {
      fs::remove_all(directory);
      fs::remove(directory.string() + ".said");
    } else {
      ++tally.failed_experiments;
      say_failure(options, number, faults);
      still_running(std::chrono::seconds(20));
      if (!options.go_on) break;
    }
    if (tally.all_kills() / 1000 > lines) {
      lines = tally.all_kills() / 1000;
      say_summary(tally);
    }
  }
  fmt::print("seed {}, in all: ", options.seed);
  say_summary(tally);
  if (tally.failed_experiments > 0) return 1;
  fs::remove_all(options.directory);
  return 0;
}

fs::path temporary_directory() {
  std::string name = (fs::temp_directory_path() / "cadre_soak_XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make the directory " + name);
  return name;
}

Options parse(std::span<char*> arguments) {
  Options options;
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    const std::string_view name = arguments[i];
    const auto value = [&] {
      if (i + 1 == arguments.size()) throw std::runtime_error(std::string(name) + " needs a value");
      return std::string(arguments[++i]);
    };
    if (name == "--kills") {
      options.kills = std::stoll(value());
    } else if (name == "--seed") {
      options.seed = std::stoull(value());
    } else if (name == "--first") {
      options.first = std::stoll(value());
    } else if (name == "--directory") {
      options.directory = fs::absolute(value());
    } else if (name == "--go-on") {
      options.go_on = true;
    } else {
      throw std::runtime_error("unknown option " + std::string(name) + "\n" + kHelp);
    }
  }
  if (options.directory.empty()) options.directory = temporary_directory();
  fs::create_directories(options.directory);
  return options;
}

}  // namespace
}  // namespace cadre::survival

int main(int argc, char** argv) {
  using namespace cadre::survival;  // NOLINT(google-build-using-namespace)
  run_if_controller(argc, argv);
  if (argc == 2 && std::string_view(argv[1]) == "--help") {
    std::cout << kHelp;
    return 0;
  }
  try {
    adopt_orphans();
    return soak(parse({argv, static_cast<std::size_t>(argc)}));
  } catch (const std::exception& error) {
    std::cerr << "cadre_soak: " << error.what() << "\n";
    return 2;
  }
}
