#include "survival/experiment_subject.h"

#include <fmt/format.h>

#include <stdexcept>

#include "survival/place.h"
#include "survival/published.h"

namespace cadre::survival {
namespace fs = std::filesystem;
namespace {

constexpr std::int64_t kSettings = 24;
constexpr auto kPatience = std::chrono::seconds(60);

std::string fault_of_checkpoint(const store::CheckpointRow& row, const fs::path& files) {
  const auto state = read_state(files);
  if (!state) return "cannot be loaded";
  return state->step == row.step ? "" : fmt::format("is of step {} and holds step {}", row.step, state->step);
}

}  // namespace

class ExperimentSubject final : public Subject {
 public:
  ExperimentSubject(Experiments& all, std::int64_t setting_number, const std::string& name)
      : all_(all),
        setting_number_(setting_number),
        setting_(all.setting_of(setting_number)),
        place_(make_place(all.folder_, name, all.storage_)) {}

  std::string text() const override {
    return setting_.text() + (is_published() ? ", published" : "") + (has_nodes() ? ", on nodes" : "");
  }
  bool has_begun() const override { return tune::Tuner::can_restore(place_.name()); }
  ControllerProcess start(Random& random, std::vector<std::string> environment) override;
  double progress() const override;
  Plan draw_plan(Random& random) const override;
  std::vector<Candidate> workers(Victim kind, const ControllerProcess& controller) const override;
  bool disturb_node(Victim victim, Random& random, const ControllerProcess& controller) override {
    return all_.nodes_->disturb(victim, random, controller);
  }
  bool has_nodes() const override { return all_.nodes_ != nullptr; }
  void heal() override {
    if (has_nodes()) all_.nodes_->heal();
  }
  void take_away(Random& random) override;
  std::vector<std::string> faults_of_readers(Random& random) override;
  std::vector<std::string> faults(bool finished, std::int64_t worker_kills) override;
  void remove() override { survival::remove(place_); }

 private:
  bool is_published() const { return !place_.uri.empty(); }

  Experiments& all_;
  std::int64_t setting_number_;
  Setting setting_;
  Place place_;
};

std::unique_ptr<Subject> Experiments::make(std::int64_t index, const std::string& name) {
  return std::make_unique<ExperimentSubject>(*this, index % kSettings, name);
}

Setting Experiments::setting_of(std::int64_t setting_number) const {
  const auto number = static_cast<int>(setting_number);
  Setting setting{.synch = number % 2 == 0};
  setting.population = 2 + number % 7;
  setting.num_to_keep = 1 + number % 4;
  setting.checkpoint_interval = number % 3 == 0 ? 2 : 1;
  setting.is_class = number % 4 == 3;
  setting.copied = number % 5 == 0 && !setting.is_class;
  setting.max_failures = number % 3 - 1;  // unlimited, none, one
  setting.has_programs = number % 4 == 1;
  if (storage_ || nodes_) {  // long enough for several states that are published, and for nodes that come again
    setting.population = 2 + number % 3;
    setting.steps = 120;
    setting.interval = 20;
  } else if (number == 0 || number == kSettings - 1) {  // long enough for a snapshot
    setting.population = 8;
    setting.steps = 720;
    setting.interval = 60;
    setting.checkpoint_interval = 20;
  }
  return setting;
}

const Outcome& Experiments::undisturbed(std::int64_t setting_number) {
  if (const auto found = undisturbed_.find(setting_number); found != undisturbed_.end()) return found->second;
  const Place place = make_place(folder_, fmt::format("undisturbed_{}", setting_number), /*storage=*/{});
  ControllerProcess controller(
      {.experiment = place.name(), .setting = setting_of(setting_number), .environment = {}, .said = place.said});
  const auto ended = controller.wait(kPatience);
  if (!ended || ended->code != Ended::finished)
    throw std::runtime_error("an undisturbed experiment does not end well: " + (ended ? ended->message : "it hangs"));
  return undisturbed_[setting_number] = outcome_of(place.directory);
}

ControllerProcess ExperimentSubject::start(Random& random, std::vector<std::string> environment) {
  environment.push_back("HOME=" + place_.home.string());
  if (has_nodes()) environment.push_back(all_.nodes_->variable());
  const int nodes = has_nodes() ? static_cast<int>(2 + random.below(2)) : 0;
  return ControllerProcess({.experiment = place_.name(),
                            .setting = setting_,
                            .slots = static_cast<int>(1 + random.below(4)),
                            .nodes = nodes,
                            .over_stdio = has_nodes() && random.chance(0.3),
                            .environment = std::move(environment),
                            .said = place_.said});
}

double ExperimentSubject::progress() const {
  std::int64_t steps = 0;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(place_.directory, none)) {
    if (entry.is_directory(none)) steps += last_step(entry.path());
  }
  return static_cast<double>(steps) / static_cast<double>(setting_.population * setting_.steps);
}

// Covers all phases: the first milliseconds, any time in between, the end.
Plan ExperimentSubject::draw_plan(Random& random) const {
  Plan plan;
  const bool spare_workers = setting_.synch && setting_.max_failures >= 0;
  const double whom = random.uniform(0, 1);
  plan.victim = has_nodes()                    ? Nodes::draw_victim(random, spare_workers)
                : whom < 0.3                   ? Victim::controller
                : whom < 0.4                   ? Victim::both
                : whom < 0.55                  ? Victim::everyone
                : whom < 0.6                   ? Victim::stopped
                : whom < 0.75 || spare_workers ? Victim::server
                                               : Victim::worker;
  const double when = random.uniform(0, 1);
  if (when < 0.35) {
    plan.after = Milliseconds(random.log_uniform(0.1, is_published() || has_nodes() ? 400 : 40));
  } else if (when < 0.85) {
    plan.after = Milliseconds(random.uniform(0, setting_.steps > 100 ? 1500 : 150));
  } else {
    plan.at_progress = random.uniform(0.6, 1);
    plan.after = Milliseconds(random.uniform(0, is_published() ? 200 : 10));
  }
  return plan;
}

std::vector<Subject::Candidate> ExperimentSubject::workers(Victim, const ControllerProcess& controller) const {
  std::vector<Candidate> found;
  for (const pid_t process : has_nodes() ? all_.nodes_->workers() : controller.workers())
    found.push_back({Victim::worker, process});
  return found;
}

void ExperimentSubject::take_away(Random& random) {
  if (is_published() && random.chance(0.4)) lose_the_local_disk(place_);
}

// Runs the program seldom, because it takes longer than everything else.
std::vector<std::string> ExperimentSubject::faults_of_readers(Random& random) {
  const fs::path program = random.chance(0.1) ? all_.program_ : "";
  std::vector<std::string> faults;
  // A controller that died in its first moments has made the directory, but no store in it.
  if (tune::Tuner::can_restore(place_.directory))
    faults = survival::faults_of_readers(place_.directory, setting_, program);
  if (!faults.empty() || !is_published()) return faults;
  return faults_of_published(storage::parse_uri(place_.uri), fault_of_checkpoint);
}

std::vector<std::string> ExperimentSubject::faults(bool finished, std::int64_t worker_kills) {
  if (!finished && !tune::Tuner::can_restore(place_.directory)) return {};  // the local disk is lost
  Expectation expectation{.finished = finished, .worker_deaths = worker_kills, .outcome = {}};
  if (finished && setting_.synch) expectation.outcome = all_.undisturbed(setting_number_);
  std::vector<std::string> faults = faults_of(place_.directory, setting_, expectation);
  if (!faults.empty() || !finished || !is_published()) return faults;
  return faults_of_all_published(storage::parse_uri(place_.uri), place_.directory, fault_of_checkpoint);
}

}  // namespace cadre::survival
