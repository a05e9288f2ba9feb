#include "survival/training_invariants.h"

#include <cadre/train.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <regex>
#include <stdexcept>
#include <string_view>

#include "base/json.h"
#include "storage/remote_directory.h"
#include "store/experiment_reader.h"
#include "support/temporary_directory.h"

namespace cadre::survival {
namespace fs = std::filesystem;
namespace {

// Returns the names of all files below the folder, which need not exist, without error.txt, which has the failures on
// the way. Names that contain a time end before it, and checkpoints have no numbers: one that was lost with its node
// has taken one.
std::vector<std::string> names_below(const fs::path& folder) {
  constexpr std::string_view events = "events.out.tfevents.";
  std::vector<std::string> names;
  if (!fs::exists(folder)) return names;  // it was lost with the disk, and no validator has begun since
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.path().filename() == "error.txt") continue;
    std::string name = entry.path().lexically_relative(folder);  // output may be links to where it is published
    if (const std::size_t place = name.rfind(events); place != name.npos) name.resize(place + events.size());
    names.push_back(std::regex_replace(name, std::regex("checkpoint_[0-9]+"), "checkpoint"));
  }
  std::ranges::sort(names);
  const auto same = std::ranges::unique(names);
  names.erase(same.begin(), same.end());
  return names;
}

// Returns the lines of validations.json.
std::vector<Config> validations_of(const fs::path& run) {
  std::vector<Config> validations;
  std::ifstream lines(run / "validations.json");
  for (std::string line; std::getline(lines, line);)
    validations.emplace_back(base::parse_json(line, "validations.json").dict());
  return validations;
}

class Inspection {
 public:
  Inspection(const fs::path& run, const TrainingSetting& setting, const TrainingOutcome& undisturbed)
      : run_(run), setting_(setting), undisturbed_(undisturbed) {}

  std::vector<std::string> faults() {
    check_outcome();
    check_result_file();
    check_validations();
    check_records();
    check_directories();
    return std::move(faults_);
  }

 private:
  void require(bool is_so, const std::string& fault) {
    if (!is_so) faults_.push_back(fault);
  }
  std::int64_t checkpoints() const { return setting_.steps / setting_.checkpoint_interval; }
  std::int64_t kept() const { return std::min(setting_.num_to_keep, checkpoints()); }

  void check_outcome();
  void check_result_file();
  void check_validations();
  void check_records();
  void check_directories();

  fs::path run_;
  const TrainingSetting& setting_;
  const TrainingOutcome& undisturbed_;
  TrainingOutcome outcome_ = outcome_of_training(run_);
  std::vector<std::string> faults_;
};

void Inspection::check_outcome() {
  require(std::ssize(outcome_.history) == setting_.steps,
          std::to_string(outcome_.history.size()) + " results instead of " + std::to_string(setting_.steps));
  require(outcome_.history == undisturbed_.history, "the results are others than undisturbed");
  require(outcome_.state == undisturbed_.state, "the parameters are others than undisturbed");
  require(outcome_.kept == undisturbed_.kept && std::ssize(outcome_.kept) == kept(),
          "the validations of the kept checkpoints are others than undisturbed");
  for (const auto& [step, verdict] : undisturbed_.verdicts) {
    const auto found = outcome_.verdicts.find(step);
    const std::string is = found == outcome_.verdicts.end() ? "missing" : to_json(found->second.dict());
    require(is == to_json(verdict.dict()), "the validation of the checkpoint of step " + std::to_string(step) + " is " +
                                               is + " and not " + to_json(verdict.dict()));
  }
  std::vector<std::string> left;
  std::ranges::set_difference(outcome_.validator_files, undisturbed_.validator_files, std::back_inserter(left));
  for (const std::string& file : left)
    faults_.push_back("validations/" + file + " was left, which is not there undisturbed");
}

// Expects a whole line for each result: the reported values, then further keys.
void Inspection::check_result_file() {
  std::ifstream rows(run_ / "result.json");
  std::string line;
  bool is_whole = true;
  for (const Metrics& result : outcome_.history) {
    const std::string reported = to_json(result.dict());
    std::getline(rows, line);  // at the end of the file if no line break ends the line
    is_whole = is_whole && rows.good() && line.ends_with('}') &&
               line.starts_with(reported.substr(0, reported.size() - 1) + ", \"timestamp\"");
  }
  require(is_whole && rows.peek() == std::ifstream::traits_type::eof(),
          "result.json has other results than the store, or a torn line");
}

// Expects a line for each checkpoint.
void Inspection::check_validations() {
  const std::vector<Config> validations = validations_of(run_);
  require(std::ssize(validations) == checkpoints(), "validations.json has " + std::to_string(validations.size()) +
                                                        " lines for " + std::to_string(checkpoints()) + " checkpoints");
  for (const Config& validation : validations) {
    const auto status = validation.get<std::string>("status");
    require(status == "validated", validation.get<std::string>("checkpoint") + " is " + status);
  }
}

// Expects each checkpoint's validation to have ended once.
void Inspection::check_records() {
  std::map<std::string, std::int64_t> ends;
  const store::ExperimentReader reader(run_, store::ExperimentReader::Check::rows);
  reader.visit({.result = [](const store::ResultRow&) {},
                .event = [](const store::EventRow&) {},
                .decision =
                    [&](const store::DecisionRow& row) {
                      if (row.kind != "finish_validation") return;
                      const Config data(base::parse_json(row.data, "a decision").dict());
                      ++ends[data.get<std::string>("checkpoint") + " is " + data.get<std::string>("status")];
                    }});
  require(std::ssize(ends) == checkpoints(), std::to_string(ends.size()) + " validations have an end in the store");
  for (const auto& [end, times] : ends)
    require(times == 1 && end.ends_with(" validated"), end + ", recorded " + std::to_string(times) + " times");
}

void Inspection::check_directories() {
  std::int64_t found = 0;
  for (const auto& entry : fs::directory_iterator(run_)) {
    const std::string name = entry.path().filename();
    require(!name.starts_with(".reporting_"), name + " was left");
    if (!name.starts_with("checkpoint_")) continue;
    ++found;
    if (fs::exists(entry.path() / storage::kRemoteFile)) continue;  // it is published
    for (std::int64_t rank = 0; rank < setting_.workers; ++rank)
      require(fs::exists(entry.path() / file_of_rank(rank)), name + " lacks " + file_of_rank(rank));
  }
  require(found == kept(), std::to_string(found) + " checkpoints are kept");
}

}  // namespace

TrainingOutcome outcome_of_training(const fs::path& run) {
  const train::Result result = train::Result::from_directory(run);
  if (!result.checkpoint) throw std::runtime_error("there is no checkpoint");
  TrainingOutcome outcome{.history = result.metrics_history,
                          .state = test_support::content_of(result.checkpoint->as_directory().path() / kStateFile),
                          .kept = {},
                          .verdicts = {},
                          .validator_files = names_below(run / "validations")};
  for (const train::ReportedCheckpoint& one : result.best_checkpoints) {
    if (one.status == train::ReportedCheckpointStatus::validated) outcome.kept.push_back(one.validation_metrics);
  }
  for (const Config& validation : validations_of(run)) {
    const Config reported(validation.at("reported_metrics"));
    outcome.verdicts.emplace(reported.get<std::int64_t>("step"), Metrics(validation.at("validation_metrics")));
  }
  return outcome;
}

std::vector<std::string> faults_of_training(const fs::path& run, const TrainingSetting& setting,
                                            const TrainingOutcome& undisturbed) {
  return Inspection(run, setting, undisturbed).faults();
}

}  // namespace cadre::survival
