// Disturbs experiments and training runs at random moments: kills their processes, alone and two at once, and signals
// and stops all of them. Continues the runs, checks what is left with every reader, and compares the outcomes with
// those of undisturbed runs. Published runs lose their local disk, too, and those on nodes their agents and the
// network. `cadre_soak --help` says how to run it.
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <iostream>
#include <map>
#include <optional>
#include <stdexcept>
#include <thread>

#include "cli/command_line.h"
#include "storage_server.h"
#include "survival/experiment_subject.h"
#ifdef CADRE_TRAINING_CONTROLLER
#include "survival/training_subject.h"
#endif

namespace cadre::survival {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr auto kPatience = std::chrono::seconds(120);
constexpr auto kPollInterval = std::chrono::microseconds(300);

struct Options {
  std::int64_t kills = 1000;
  std::uint64_t seed = std::random_device()();
  std::int64_t first = 0;
  fs::path directory = {};
  std::string only = {};
  bool go_on = false;
};

// ---- Counts of disturbances

struct Tally {
  std::map<Victim, std::int64_t> kills = {};
  std::int64_t lost_disks = 0;
  std::int64_t runs = 0;
  std::int64_t restores = 0;
  std::int64_t failed_runs = 0;
  Milliseconds time_to_restore{0};  // sum of the times from the program's start to its first worker
  std::int64_t restores_timed = 0;

  std::int64_t all_kills() const {
    std::int64_t all = 0;
    for (const auto& [victim, count] : kills) all += count;
    return all;
  }
};

void say_summary(const Tally& tally) {
  fmt::print("{} kills, signals and stops", tally.all_kills());
  const char* separator = ": ";
  for (const auto& [victim, count] : tally.kills)
    fmt::print("{}{} {}", std::exchange(separator, ", "), count, name_of(victim));
  fmt::print("; {} restores in {} runs, {:.1f} ms to the first worker of a restore; {} failed\n", tally.restores,
             tally.runs,
             tally.time_to_restore.count() / static_cast<double>(std::max<std::int64_t>(1, tally.restores_timed)),
             tally.failed_runs);
  std::fflush(stdout);
}

// ---- One run, from its beginning to its end

class Disturbance {
 public:
  Disturbance(const Options& options, Subject& subject, std::int64_t number, Tally& tally)
      : options_(options),
        subject_(subject),
        tally_(tally),
        random_(options.seed, static_cast<std::uint64_t>(number)) {}

  // Returns faults, a line each.
  std::vector<std::string> run();

 private:
  struct Life {
    ControllerProcess controller;
    Clock::time_point began = Clock::now();
    bool restores = false;
    bool timed = false;   // or is not to be timed
    bool mortal = false;  // its controller or server was killed
    bool has_lost_nodes = false;
    int signal = 0;  // sent to all of its processes
  };

  void live();
  bool follow(Life& life, const Plan& plan);
  void disturb(Life& life, const Plan& plan);
  std::optional<Subject::Candidate> choose(const Life& life, const Plan& plan);
  std::vector<Subject::Candidate> candidates(const Life& life, Victim victim) const;
  void kill_both(Life& life);
  void signal_all(Life& life);
  void stop_all(const Life& life);
  void disturb_node(Life& life, Victim victim);
  void take_end(const Life& life, const Ended& ended);
  void restore_once_more();
  void wait_for_the_dead();
  void count(Victim victim) { ++tally_.kills[victim]; }

  const Options& options_;
  Subject& subject_;
  Tally& tally_;
  Random random_;
  std::int64_t worker_kills_ = 0;
  bool finished_ = false;
  bool was_signalled_ = false;  // at the end: the controller then leaves publishing to the next one
  std::vector<std::string> faults_ = {};
};

std::vector<std::string> Disturbance::run() {
  ++tally_.runs;
  while (!finished_ && faults_.empty()) live();
  if (faults_.empty()) wait_for_the_dead();
  if (faults_.empty() && was_signalled_) restore_once_more();
  if (faults_.empty()) faults_ = subject_.faults(true, worker_kills_);
  if (faults_.empty() && random_.chance(0.25)) restore_once_more();
  if (!faults_.empty()) faults_.insert(faults_.begin(), subject_.text());
  return std::move(faults_);
}

// Runs one controller, from its start to its end.
void Disturbance::live() {
  const bool restores = subject_.has_begun();
  Life life{.controller = subject_.start(random_, {}),
            .restores = restores,
            .timed = random_.chance(0.8) || subject_.has_nodes()};  // looking for workers costs more than all the rest
  if (restores) ++tally_.restores;
  while (!life.mortal && life.signal == 0 && tally_.all_kills() < options_.kills) {
    const Plan plan = subject_.draw_plan(random_);
    if (!follow(life, plan)) return faults_.push_back("the controller: " + life.controller.what_hangs());
    if (const auto ended = life.controller.wait(std::chrono::nanoseconds(0))) return take_end(life, *ended);
    disturb(life, plan);
  }
  const auto ended = life.controller.wait(kPatience);
  if (!ended) return faults_.push_back("the controller: " + life.controller.what_hangs());
  take_end(life, *ended);
}

// Waits until the planned moment, or until the controller has ended. Returns false if neither comes within kPatience:
// the run hangs, and to kill its controller would set it going again.
bool Disturbance::follow(Life& life, const Plan& plan) {
  const auto reached = [&] { return plan.at_progress == 0 || subject_.progress() >= plan.at_progress; };
  std::optional<Clock::time_point> moment;
  for (const auto give_up = Clock::now() + kPatience; Clock::now() < give_up;) {
    if (!moment && reached()) moment = Clock::now() + std::chrono::duration_cast<Clock::duration>(plan.after);
    if (moment && Clock::now() >= *moment) return true;
    if (life.restores && !life.timed && !life.controller.workers().empty()) {
      life.timed = true;
      ++tally_.restores_timed;
      tally_.time_to_restore += Clock::now() - life.began;
    }
    const auto nap = moment ? std::min<Clock::duration>(kPollInterval, *moment - Clock::now()) : kPollInterval;
    if (life.controller.has_ended()) return true;
    std::this_thread::sleep_for(nap);
  }
  return false;
}

void Disturbance::disturb(Life& life, const Plan& plan) {
  if (plan.victim == Victim::both) return kill_both(life);
  if (plan.victim == Victim::everyone) return signal_all(life);
  if (plan.victim == Victim::stopped) return stop_all(life);
  if (is_of_nodes(plan.victim)) return disturb_node(life, plan.victim);
  const auto chosen = choose(life, plan);
  if (!chosen) return;
  ::kill(chosen->process, SIGKILL);
  count(chosen->kind);
  if (chosen->kind == Victim::controller || chosen->kind == Victim::server) {
    life.mortal = true;
  } else {
    ++worker_kills_;
  }
}

// Returns a victim; empty if no process of the kind appeared in time.
std::optional<Subject::Candidate> Disturbance::choose(const Life& life, const Plan& plan) {
  const auto end = Clock::now() + plan.patience;
  while (candidates(life, plan.victim).empty()) {
    if (Clock::now() >= end || life.controller.has_ended()) return std::nullopt;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  std::this_thread::sleep_for(plan.hesitation);
  const auto found = candidates(life, plan.victim);
  if (found.empty() || life.controller.has_ended()) return std::nullopt;
  return found[random_.below(found.size())];
}

std::vector<Subject::Candidate> Disturbance::candidates(const Life& life, Victim victim) const {
  if (victim == Victim::controller) return {{victim, life.controller.process()}};
  if (victim != Victim::server) return subject_.workers(victim, life.controller);
  std::vector<Subject::Candidate> servers;
  for (const pid_t process : life.controller.server()) servers.push_back({victim, process});
  return servers;
}

// Kills both at the same instant: they are stopped first.
void Disturbance::kill_both(Life& life) {
  const std::vector<pid_t> server = life.controller.server();
  if (server.empty()) return;
  for (const int signal : {SIGSTOP, SIGKILL}) {
    life.controller.kill(signal);
    ::kill(server.front(), signal);
  }
  count(Victim::both);
  life.mortal = true;
}

// Signals all processes in any order, as service managers and batch systems do.
void Disturbance::signal_all(Life& life) {
  constexpr std::array signals{SIGTERM, SIGTERM, SIGHUP, SIGINT};
  life.signal = signals.at(random_.below(signals.size()));
  std::vector<pid_t> family = life.controller.family();
  if (random_.chance(0.5)) std::ranges::reverse(family);
  for (const pid_t process : family) ::kill(process, life.signal);
  count(Victim::everyone);
}

void Disturbance::stop_all(const Life& life) {
  const std::vector<pid_t> family = life.controller.family();
  for (const pid_t process : family) ::kill(process, SIGSTOP);
  std::this_thread::sleep_for(Milliseconds(random_.uniform(0, 200)));
  for (const pid_t process : family) ::kill(process, SIGCONT);
  count(Victim::stopped);
}

void Disturbance::disturb_node(Life& life, Victim victim) {
  if (!subject_.disturb_node(victim, random_, life.controller)) return;
  count(victim);
  life.has_lost_nodes = true;
  life.mortal |= victim == Victim::controller_and_agent;
}

void Disturbance::take_end(const Life& life, const Ended& ended) {
  finished_ = ended.code == Ended::finished;
  was_signalled_ = life.signal != 0;
  const bool interrupted = life.signal != 0 && (ended.code == Ended::interrupted || ended.code == -life.signal);
  // A program whose agents end before it has begun is refused its nodes.
  const bool had_no_nodes = life.has_lost_nodes && ended.code == Ended::engine_error &&
                            ended.message.find("a node cannot be had") != std::string::npos;
  const bool expected = finished_ || interrupted || had_no_nodes ||
                        (life.mortal && (ended.code == -SIGKILL || ended.code == Ended::engine_error));
  if (!expected)
    faults_.push_back(fmt::format("the controller {} ended with code {}: {}",
                                  life.restores ? "that restores" : "that begins", ended.code, ended.message));
  if (finished_ || !faults_.empty()) return;
  // A user may start the program again at once or wait.
  const bool waits = random_.chance(0.5);
  if (waits && !subject_.has_nodes()) wait_for_the_dead();
  if (!faults_.empty() || !subject_.has_begun()) return;
  faults_ = subject_.faults_of_readers(random_);
  if (faults_.empty() && random_.chance(0.5)) faults_ = subject_.faults(false, worker_kills_);
  if (faults_.empty() && waits) subject_.take_away(random_);
}

void Disturbance::wait_for_the_dead() {
  subject_.heal();
  for (const std::string& process : still_running(std::chrono::seconds(20), storage_server()))
    faults_.push_back(process + " runs on");
}

// Restores a finished run, which changes nothing.
void Disturbance::restore_once_more() {
  const auto ended = subject_.start(random_, {}).wait(kPatience);
  if (!ended || ended->code != Ended::finished)
    return faults_.push_back("the ended run cannot be restored: " + (ended ? ended->message : "it hangs"));
  faults_ = subject_.faults(true, worker_kills_);
}

// ---- All runs

constexpr std::array kKinds{"experiments", "published", "training", "nodes"};
constexpr std::size_t kNodes = 3;  // only on request: these wait for nodes most of the time
// Returns the kind of the run with that number: most are experiments, which take the least time.
constexpr std::int64_t kRound = 32;
constexpr std::size_t kind_of(std::int64_t number) {
  const std::int64_t place = number % kRound;
  return place % 16 == 2 ? 1 : place == 4 ? 2 : 0;
}

struct Turn {
  std::size_t kind = 0;
  std::int64_t index = 0;  // among the runs of its kind
};
Turn turn_of(std::int64_t number) {
  Turn turn{.kind = kind_of(number)};
  std::int64_t of_a_round = 0;
  for (std::int64_t place = 0; place < kRound; ++place) {
    if (kind_of(place) != turn.kind) continue;
    ++of_a_round;
    if (place < number % kRound) ++turn.index;
  }
  turn.index += number / kRound * of_a_round;
  return turn;
}

class Soak {
 public:
  explicit Soak(const Options& options) : options_(options) {}

  // Returns true if there were no faults.
  bool run() {
    for (std::int64_t number = options_.first; tally_.all_kills() < options_.kills; ++number) {
      const auto subject = make(number);
      if (subject == nullptr) continue;
      const std::vector<std::string> faults = Disturbance(options_, *subject, number, tally_).run();
      if (faults.empty()) {
        subject->remove();
      } else {
        say_failure(number, faults);
        if (!options_.go_on) break;
      }
      if (tally_.all_kills() / 1000 > lines_) {
        lines_ = tally_.all_kills() / 1000;
        say_summary(tally_);
      }
    }
    fmt::print("seed {}, in all: ", options_.seed);
    say_summary(tally_);
    return tally_.failed_runs == 0;
  }

 private:
  // Returns null if the kind is not requested or not built.
  std::unique_ptr<Subject> make(std::int64_t number) {
    const Turn turn = options_.only == kKinds[kNodes] ? Turn{.kind = kNodes, .index = number} : turn_of(number);
    if (!options_.only.empty() && options_.only != kKinds.at(turn.kind)) return nullptr;
    const std::string name = fmt::format("run_{}", number);
    if (turn.kind == 0) return experiments_.make(turn.index, name);
    if (turn.kind == 1) return published_.make(turn.index, name);
    if (turn.kind == kNodes) return on_nodes().make(turn.index, name);
#ifdef CADRE_TRAINING_CONTROLLER
    return training_.make(turn.index, name);
#else
    if (options_.only.empty()) return nullptr;
    throw std::runtime_error("training runs need libtorch and Arrow, and this build has not both");
#endif
  }

  Experiments& on_nodes() {
    if (!on_nodes_) {
      on_nodes_.emplace(options_.directory, program_beside("cadre"));
      on_nodes_->use_nodes();
    }
    return *on_nodes_;
  }

  void say_failure(std::int64_t number, const std::vector<std::string>& faults) {
    ++tally_.failed_runs;
    for (const std::string& fault : faults) fmt::print("{}\n", fault);
    const std::string only = options_.only.empty() ? "" : " --only " + options_.only;
    fmt::print("run {} FAILED; it is kept in {}. To try it again: cadre_soak --seed {} --first {}{}\n", number,
               options_.directory.string(), options_.seed, number, only);
    std::fflush(stdout);
    still_running(std::chrono::seconds(20), storage_server());
  }

  const Options& options_;
  Tally tally_ = {};
  std::int64_t lines_ = 0;
  const StorageFolder storage_ = folder_of_the_server(options_.directory);
  Experiments experiments_{options_.directory, program_beside("cadre")};
  std::optional<Experiments> on_nodes_ = {};
  Experiments published_{options_.directory, program_beside("cadre"), storage_};
#ifdef CADRE_TRAINING_CONTROLLER
  Trainings training_{options_.directory, program_beside("cadre_training_controller"), storage_};
#endif
};

fs::path temporary_directory() {
  std::string name = (fs::temp_directory_path() / "cadre_soak_XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make the directory " + name);
  return name;
}

}  // namespace
}  // namespace cadre::survival

int main(int argc, char** argv) {
  using namespace cadre::survival;  // NOLINT(google-build-using-namespace)
  run_if_controller(argc, argv);
  Options options;
  cadre::cli::Program program(
      "cadre_soak: kills experiments and training runs, signals and stops them, at random moments, and checks that "
      "nothing acknowledged is lost and nothing is left",
      "cadre_soak");
  cadre::cli::Command command = program.command();
  command.option("--kills", &options.kills, "how many kills, signals and stops").show_default();
  command.option("--seed", &options.seed,
                 "of everything that is random here (default: drawn); the moments also depend on the machine");
  command.option("--first", &options.first, "number of the first run, to repeat one that failed").show_default();
  command.option("--only", &options.only, "runs of one kind only").one_of({kKinds.begin(), kKinds.end()});
  command.option("--directory", &options.directory, "where runs live (default: a new one, which goes if all is well)");
  command.flag("--go-on", &options.go_on, "goes on after a failure");
  bool all_was_well = true;
  command.on_call([&] {
    if (options.directory.empty()) options.directory = temporary_directory();
    options.directory = std::filesystem::absolute(options.directory);
    std::filesystem::create_directories(options.directory);
    adopt_orphans();
    all_was_well = Soak(options).run();
    if (all_was_well) std::filesystem::remove_all(options.directory);
  });
  try {
    const int exit_code = program.parse(argc, argv, /*wrong_usage=*/2);
    return all_was_well ? exit_code : 1;
  } catch (const std::exception& error) {
    std::cerr << "cadre_soak: " << error.what() << "\n";
    return 2;
  }
}
