#include "survival/training_subject.h"

#include <cadre/train.h>
#include <fmt/format.h>

#include <set>
#include <stdexcept>

#include "support/temporary_directory.h"
#include "survival/place.h"
#include "survival/published.h"

namespace cadre::survival {
namespace fs = std::filesystem;
namespace {

constexpr auto kPatience = std::chrono::seconds(120);

TrainingSetting setting_of(std::int64_t index) {
  const std::int64_t shape = index / std::ssize(kForms);
  return {.form = static_cast<Form>(index % std::ssize(kForms)),
          .workers = 1 + shape % 3,
          .checkpoint_interval = 1 + shape % 4,
          .num_to_keep = 1 + shape % 2};
}

std::set<std::string> names_in(const fs::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.insert(entry.path().filename());
  return names;
}

}  // namespace

class TrainingSubject final : public Subject {
 public:
  TrainingSubject(Trainings& all, const TrainingSetting& setting, const std::string& name, const StorageFolder& storage)
      : all_(all),
        setting_(setting),
        place_(make_place(all.folder_, name, storage)),
        temporary_(all.folder_ / (name + "_temporary")) {
    fs::remove_all(temporary_);
    fs::create_directories(temporary_);
  }

  std::string text() const override { return setting_.text() + (is_published() ? ", published" : ""); }
  bool has_begun() const override { return train::Trainer::can_restore(place_.name()); }
  ControllerProcess start(Random&, std::vector<std::string> environment) override {
    return start(std::move(environment));
  }
  double progress() const override { return 1; }  // unused by plans
  Plan draw_plan(Random& random) const override;
  std::vector<Candidate> workers(Victim kind, const ControllerProcess& controller) const override;
  void take_away(Random& random) override;
  std::vector<std::string> faults_of_readers(Random& random) override;
  std::vector<std::string> faults(bool finished, std::int64_t worker_kills) override;
  void remove() override;

  ControllerProcess start(std::vector<std::string> environment = {}) const;
  TrainingOutcome outcome() const { return outcome_of_training(place_.directory); }

 private:
  bool is_published() const { return !place_.uri.empty(); }
  Victim kind_of(const fs::path& output) const;
  std::vector<std::string> leftovers() const;

  Trainings& all_;
  TrainingSetting setting_;
  Place place_;
  fs::path temporary_;  // for temporary files of the run's processes
};

std::unique_ptr<Subject> Trainings::make(std::int64_t index, const std::string& name) {
  const bool is_published = (index / std::ssize(kForms)) % 2 == 1;
  return std::make_unique<TrainingSubject>(*this, setting_of(index), name, is_published ? storage_ : StorageFolder());
}

const TrainingOutcome& Trainings::undisturbed(const TrainingSetting& setting) {
  if (const auto found = undisturbed_.find(setting.text()); found != undisturbed_.end()) return found->second;
  TrainingSubject quiet(*this, setting, "undisturbed_training", /*storage=*/{});
  const auto ended = quiet.start().wait(kPatience);
  if (!ended || ended->code != Ended::finished)
    throw std::runtime_error("an undisturbed training run does not end well: " + (ended ? ended->message : "it hangs"));
  const TrainingOutcome& outcome = undisturbed_[setting.text()] = quiet.outcome();
  quiet.remove();
  // All kinds of validators must agree on the same parameters.
  TrainingSetting any_form = setting;
  any_form.form = Form::simple;
  const auto [first, is_first] = verdicts_.emplace(any_form.text(), outcome.verdicts);
  if (first->second != outcome.verdicts)
    throw std::runtime_error("undisturbed, a validator finds other counts than one of another form: " + setting.text());
  return outcome;
}

ControllerProcess TrainingSubject::start(std::vector<std::string> environment) const {
  environment.insert(environment.end(), {"HOME=" + place_.home.string(), "TMPDIR=" + temporary_.string()});
  return {to_arguments({.run = place_.name(), .rows = all_.rows(), .setting = setting_}), environment, place_.said,
          all_.program_};
}

// Chooses each kind of worker that exists with this validator as often as another.
Plan TrainingSubject::draw_plan(Random& random) const {
  Plan plan{.after = Milliseconds(random.uniform(0, 600)),
            .patience = Milliseconds(300),
            .hesitation = Milliseconds(random.uniform(0, 30))};
  std::vector kinds{Victim::rank, Victim::validator};
  if (setting_.form == Form::trainer) kinds.push_back(Victim::rank_of_validator);
  if (setting_.form == Form::map_batches) kinds.push_back(Victim::dataset_worker);
  const double whom = random.uniform(0, 1);
  plan.victim = whom < 0.15   ? Victim::controller
                : whom < 0.22 ? Victim::server
                : whom < 0.28 ? Victim::both
                : whom < 0.4  ? Victim::everyone
                : whom < 0.5  ? Victim::stopped
                              : kinds[random.below(kinds.size())];
  return plan;
}

// Returns the kind of a worker by the file of its output.
Victim TrainingSubject::kind_of(const fs::path& output) const {
  const auto is_below = [&](const fs::path& folder) { return output.string().starts_with(folder.string() + "/"); };
  const fs::path validations = place_.directory / "validations";
  if (is_below(temporary_)) return Victim::dataset_worker;
  if (is_below(validations)) {
    const fs::path of_validator = output.lexically_relative(validations);  // <checkpoint>/stdout
    return std::distance(of_validator.begin(), of_validator.end()) == 2 ? Victim::validator : Victim::rank_of_validator;
  }
  return is_below(place_.directory) ? Victim::rank : Victim::newborn;  // it still has the server's output
}

// Includes newborn workers, which may become any kind.
std::vector<Subject::Candidate> TrainingSubject::workers(Victim kind, const ControllerProcess& controller) const {
  std::vector<Candidate> found;
  for (const pid_t process : controller.workers()) {
    const fs::path output = output_of(process);
    if (output.empty()) continue;  // it is ending
    const Victim is = kind_of(output);
    if (is == kind || is == Victim::newborn) found.push_back({is, process});
  }
  return found;
}

void TrainingSubject::take_away(Random& random) {
  if (is_published() && random.chance(0.4)) lose_the_local_disk(place_);
}

std::vector<std::string> TrainingSubject::faults_of_readers(Random&) {
  const test_support::TemporaryDirectory copy;
  for (const char* name : {"experiment.db", "experiment.db-wal"})
    if (fs::exists(place_.directory / name)) fs::copy_file(place_.directory / name, copy / name);
  try {
    if (train::Trainer::can_restore(copy.path())) (void)train::Result::from_directory(copy.path());
  } catch (const std::exception& error) {
    return {std::string("Result::from_directory throws: ") + error.what()};
  }
  if (!is_published()) return {};
  return faults_of_published(storage::parse_uri(place_.uri), [](const store::CheckpointRow&, const fs::path& files) {
    return fs::exists(files / file_of_rank(0)) ? "" : "has no file of rank 0";
  });
}

std::vector<std::string> TrainingSubject::faults(bool finished, std::int64_t) {
  if (!finished) return {};
  std::vector<std::string> faults = faults_of_training(place_.directory, setting_, all_.undisturbed(setting_));
  for (std::string& left : leftovers()) faults.push_back(std::move(left));
  if (!faults.empty() || !is_published()) return faults;
  return faults_of_all_published(storage::parse_uri(place_.uri), place_.directory,
                                 [this](const store::CheckpointRow&, const fs::path& files) {
                                   for (std::int64_t rank = 0; rank < setting_.workers; ++rank)
                                     if (!fs::exists(files / file_of_rank(rank))) return "lacks " + file_of_rank(rank);
                                   return std::string();
                                 });
}

std::vector<std::string> TrainingSubject::leftovers() const {
  std::vector<std::string> left;
  for (const std::string& name : names_in(temporary_)) left.push_back("the temporary " + name + " was left");
  return left;
}

void TrainingSubject::remove() {
  survival::remove(place_);
  fs::remove_all(temporary_);
}

}  // namespace cadre::survival
