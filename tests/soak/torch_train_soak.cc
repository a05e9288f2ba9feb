// Kills small training runs and their validators at random moments, and continues them: each must come to the same
// results, to the same validations of all checkpoints and, bit for bit, to the same parameters as one that nothing
// disturbs. Controllers, fork servers, ranks and validators are killed, and what runs below a validator.
// `cadre_train_soak --help` says how to run it.
#include <signal.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "survival/controller_process.h"
#include "torch_train_subject.h"
#include "train_invariants.h"

namespace cadre::survival {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr auto kPatience = std::chrono::seconds(120);
constexpr auto kSearch = std::chrono::milliseconds(300);  // for somebody of a kind

// Three runs after each other differ in their validators only.
TrainingSetting setting_of(std::int64_t run) {
  const std::int64_t shape = run / std::ssize(kForms);
  return {.form = static_cast<Form>(run % std::ssize(kForms)),
          .workers = 1 + shape % 3,
          .checkpoint_interval = 1 + shape % 4,
          .num_to_keep = 1 + shape % 2};
}

// ---- Who is killed

enum class Victim { controller, server, rank, validator, rank_of_validator, dataset_worker, newborn };
constexpr std::array kVictims = {"controllers",         "servers",         "ranks",   "validators",
                                 "ranks of validators", "dataset workers", "newborns"};

// By where its output goes.
Victim kind_of(const fs::path& output, const fs::path& run, const fs::path& temporary) {
  const auto is_below = [&](const fs::path& folder) { return output.string().starts_with(folder.string() + "/"); };
  if (is_below(temporary)) return Victim::dataset_worker;
  if (is_below(run / "validations")) {
    const fs::path of_validator = output.lexically_relative(run / "validations");  // <checkpoint>/stdout
    return std::distance(of_validator.begin(), of_validator.end()) == 2 ? Victim::validator : Victim::rank_of_validator;
  }
  return is_below(run) ? Victim::rank : Victim::newborn;  // it has the server's output still
}

std::set<std::string> names_in(const fs::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.insert(entry.path().filename());
  return names;
}

// ---- The soak

struct Options {
  std::int64_t kills = 100;
  std::int64_t first = 0;
  std::uint64_t seed = std::random_device()();
  fs::path directory = {};
};

class Soak {
 public:
  explicit Soak(const Options& options) : options_(options), run_(options.first), random_(options.seed) {
    fs::create_directories(temporary_);
    if (!fs::exists(rows_)) write_rows(rows_);
  }

  // Returns whether all was well.
  bool run() {
    std::vector<std::string> faults;
    for (; all_kills() < options_.kills && faults.empty(); ++run_) {
      const TrainingSetting setting = setting_of(run_);
      faults = disturb(options_.directory / ("run_" + std::to_string(run_)), setting);
      for (const std::string& fault : faults)
        std::cout << "run " << run_ << " (" << setting.text() << "): " << fault << "\n";
    }
    std::cout << "seed " << options_.seed << ": " << all_kills() << " kills:";
    for (std::size_t kind = 0; kind < kVictims.size(); ++kind)
      std::cout << (kind > 0 ? ", " : " ") << kills_.at(kind) << " " << kVictims.at(kind);
    std::cout << "; " << restores_ << " restores in " << run_ - options_.first << " runs; "
              << (faults.empty() ? "all well" : "FAILED, kept in " + options_.directory.string()) << std::endl;
    return faults.empty();
  }

 private:
  std::int64_t all_kills() const {
    std::int64_t all = 0;
    for (const std::int64_t kills : kills_) all += kills;
    return all;
  }

  ControllerProcess start(const fs::path& run, const TrainingSetting& setting) const {
    return start_training(run, setting, rows_, temporary_);
  }

  std::vector<std::string> disturb(const fs::path& run, const TrainingSetting& setting) {
    const fs::path quiet = run.string() + "_undisturbed";
    if (const auto ended = start(quiet, setting).wait(kPatience); !ended || ended->code != Ended::finished)
      return {"undisturbed it does not end well: " + (ended ? ended->message : "it hangs")};
    const TrainingOutcome undisturbed = outcome_of(quiet);
    std::vector<std::string> faults = compare_forms(setting, undisturbed);
    const std::set<std::string> shared_memory = names_in("/dev/shm");
    for (;;) {
      ControllerProcess controller = start(run, setting);
      const bool killed = kill_in(controller, run, setting);
      const auto ended = controller.wait(kPatience);
      if (!ended) return {"the controller hangs"};
      if (ended->code == Ended::finished) break;
      if (!killed || (ended->code != -SIGKILL && ended->code != Ended::engine_error))
        return {"the controller ended with code " + std::to_string(ended->code) + ": " + ended->message};
      ++restores_;
    }
    for (const std::string& process : still_running(std::chrono::seconds(20)))
      faults.push_back(process + " is still running");
    if (!faults.empty()) return faults;
    faults = faults_of(run, setting, undisturbed);
    for (const std::string& name : names_in(temporary_)) faults.push_back("the temporary " + name + " was left");
    for (const std::string& name : names_in("/dev/shm")) {
      if (name.find("cadre") != name.npos && !shared_memory.contains(name))
        faults.push_back("/dev/shm/" + name + " was left");
    }
    return faults;
  }

  // The same parameters are as good, whoever says so.
  std::vector<std::string> compare_forms(const TrainingSetting& setting, const TrainingOutcome& outcome) {
    if (run_ == options_.first || setting.form == Form::simple) verdicts_ = outcome.verdicts;
    if (outcome.verdicts == verdicts_) return {};
    return {"undisturbed, its validator finds other counts than the one of another form before it"};
  }

  // Until the controller or its server was killed, or it has ended. Returns whether it was.
  bool kill_in(const ControllerProcess& controller, const fs::path& run, const TrainingSetting& setting) {
    while (all_kills() < options_.kills) {
      const auto moment = Clock::now() + std::chrono::duration<double>(uniform(0, 0.6));
      while (Clock::now() < moment) {
        if (controller.has_ended()) return false;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      const std::optional<Victim> killed = kill_one(draw_victim(setting.form), controller, run);
      if (killed == Victim::controller || killed == Victim::server) return true;
    }
    return false;
  }

  // Of workers each kind that there is with such a validator as often as another.
  Victim draw_victim(Form form) {
    const double whom = uniform(0, 1);
    if (whom < 0.25) return whom < 0.15 ? Victim::controller : Victim::server;
    std::vector kinds{Victim::rank, Victim::validator};
    if (form == Form::trainer) kinds.push_back(Victim::rank_of_validator);
    if (form == Form::map_batches) kinds.push_back(Victim::dataset_worker);
    return kinds[below(kinds.size())];
  }

  // Who it was; empty: there was nobody of this kind for a while.
  std::optional<Victim> kill_one(Victim victim, const ControllerProcess& controller, const fs::path& run) {
    const auto end = Clock::now() + kSearch;
    while (candidates(victim, controller, run).empty()) {
      if (Clock::now() > end || controller.has_ended()) return std::nullopt;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    std::this_thread::sleep_for(std::chrono::duration<double>(uniform(0, 0.03)));  // not always one that has just begun
    const std::vector<Candidate> found = candidates(victim, controller, run);
    if (found.empty() || controller.has_ended()) return std::nullopt;
    const Candidate& chosen = found[below(found.size())];
    ::kill(chosen.process, SIGKILL);
    ++kills_.at(static_cast<std::size_t>(chosen.kind));
    return chosen.kind;
  }

  struct Candidate {
    Victim kind;
    pid_t process;
  };
  // Workers that have just been born may become any kind.
  std::vector<Candidate> candidates(Victim victim, const ControllerProcess& controller, const fs::path& run) const {
    std::vector<Candidate> found;
    if (victim == Victim::controller) return {{victim, controller.process()}};
    if (victim == Victim::server) {
      for (const pid_t process : controller.server()) found.push_back({victim, process});
      return found;
    }
    for (const pid_t process : controller.workers()) {
      const fs::path output = output_of(process);
      if (output.empty()) continue;  // it is ending
      const Victim kind = kind_of(output, run, temporary_);
      if (kind == victim || kind == Victim::newborn) found.push_back({kind, process});
    }
    return found;
  }

  double uniform(double lower, double upper) { return std::uniform_real_distribution(lower, upper)(random_); }
  std::size_t below(std::size_t number) { return std::uniform_int_distribution<std::size_t>(0, number - 1)(random_); }

  const Options& options_;
  fs::path temporary_ = options_.directory / "temporary";
  fs::path rows_ = options_.directory / "rows";
  std::int64_t run_;
  std::mt19937_64 random_;
  std::array<std::int64_t, kVictims.size()> kills_ = {};
  std::map<std::int64_t, Metrics> verdicts_;  // of the setting at hand
  std::int64_t restores_ = 0;
};

}  // namespace
}  // namespace cadre::survival

int main(int argc, char** argv) {
  using namespace cadre::survival;  // NOLINT(google-build-using-namespace)
  run_if_training(argc, argv);
  Options options;
  CLI::App app("cadre_train_soak: kills training runs at random moments, and checks that they come out the same");
  app.add_option("--kills", options.kills, "how many kills")->capture_default_str();
  app.add_option("--first", options.first, "number of the first run, which says its setting")->capture_default_str();
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
