#include "survival/invariants.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "base/json.h"
#include "storage/remote_directory.h"
#include "store/experiment_lock.h"
#include "store/experiment_store.h"
#include "support/event_file.h"
#include "support/temporary_directory.h"
#include "tune/journal.h"

namespace cadre::survival {
namespace fs = std::filesystem;
namespace {

using test_support::content_of;
using test_support::TemporaryDirectory;

// The content of an experiment's store.
struct Record {
  struct Exploit {
    std::int64_t sequence = 0;
    std::int64_t target = 0;
    std::string checkpoint;
  };
  std::vector<store::ResultRow> results;
  std::vector<Exploit> exploits;
  std::vector<store::TrialRow> trials;
  std::vector<store::CheckpointRow> checkpoints;
  std::string callback_states;
  bool lost_checkpoints = false;  // a controller found some missing or damaged
};

Record read_record(const fs::path& experiment) {
  const TemporaryDirectory copy;
  for (const char* name : {"experiment.db", "experiment.db-wal"})
    if (fs::exists(experiment / name)) fs::copy_file(experiment / name, copy / name);
  const auto store = store::ExperimentStore::open(copy.path());
  Record record{.results = {},
                .exploits = {},
                .trials = store.trials(),
                .checkpoints = store.checkpoints(),
                .callback_states = store.callback_states()};
  store.visit({.result = [&](const store::ResultRow& row) { record.results.push_back(row); },
               .event =
                   [&](const store::EventRow& row) {
                     if (row.kind != "controller_started") return;
                     const Config data(base::parse_json(row.data, "the start of a controller").dict());
                     record.lost_checkpoints |= !data.at("lost_checkpoints").items().empty();
                   },
               .decision =
                   [&](const store::DecisionRow& row) {
                     if (row.kind != "exploit") return;
                     const Config data(base::parse_json(row.data, "an exploit").dict());
                     record.exploits.push_back({row.cause, row.trial, data.get<std::string>("checkpoint")});
                   }});
  return record;
}

std::string read_text(const fs::path& path) { return content_of(path); }

class Inspection {
 public:
  Inspection(const fs::path& experiment, const Setting& setting, const Expectation& expectation)
      : experiment_(experiment), setting_(setting), expectation_(expectation), record_(read_record(experiment)) {}

  std::vector<std::string> run() {
    check_witnesses();
    check_lineages();
    check_listed_checkpoints();
    check_callback();
    if (!expectation_.finished) return std::move(faults_);
    check_trials();
    if (!expectation_.leftovers) check_directories();
    check_result_files();
    check_exploits();
    check_outcome();
    check_lock();
    return std::move(faults_);
  }

 private:
  template <typename... Values>
  void fault(fmt::format_string<Values...> text, Values&&... values) {
    faults_.push_back(fmt::format(text, std::forward<Values>(values)...));
  }

  void check_witnesses();
  void check_lineages();
  void check_listed_checkpoints();
  void check_callback();
  void check_trials();
  void check_directories();
  void check_result_files();
  void check_events(const fs::path& directory, const std::vector<const store::ResultRow*>& shown, bool ended);
  void check_exploits();
  void check_outcome();
  void check_lock();
  std::vector<const store::ResultRow*> shown_results(std::int64_t trial) const;
  std::vector<std::string> lines_of(const fs::path& file);

  const fs::path& experiment_;
  const Setting& setting_;
  const Expectation& expectation_;
  Record record_;
  std::vector<std::string> faults_;
};

// Expects the store to have every acknowledged result, and none twice. No trial has run twice at a time.
void Inspection::check_witnesses() {
  std::map<std::int64_t, std::map<Witness, int>> stored;
  for (const store::ResultRow& row : record_.results)
    // A class sends a result once more with its checkpoint, and goes on in the same attempt after an exploit.
    if (++stored[row.trial][{row.attempt, row.step}] > 1 && setting_.copied && !setting_.is_class)
      fault("trial {} has the result of attempt {}, step {} twice", row.trial, row.attempt, row.step);
  for (const store::TrialRow& trial : record_.trials)
    if (has_run_twice(experiment_ / trial.directory))
      fault("trial {} ran in two processes at the same time", trial.trial);
  for (const store::TrialRow& trial : record_.trials)
    for (const Witness& witness : read_witnesses(experiment_ / trial.directory))
      if (!stored[trial.trial].contains(witness))
        fault("trial {}: the acknowledged report of attempt {}, step {} is lost", trial.trial, witness.attempt,
              witness.step);
}

// Expects each step of a lineage to count once and to follow the step before; all others are marked as repeated.
void Inspection::check_lineages() {
  std::map<std::int64_t, std::int64_t> steps;       // by trial
  std::map<std::int64_t, std::int64_t> made;        // checkpoints by trial
  std::map<std::string, std::int64_t> checkpoints;  // steps of all checkpoints that ever existed
  std::map<std::int64_t, std::string> directories;  // of trials
  for (const store::TrialRow& trial : record_.trials) directories[trial.trial] = trial.directory;
  auto exploit = record_.exploits.begin();
  const auto follow_exploits_before = [&](std::int64_t sequence) {
    for (; exploit != record_.exploits.end() && exploit->sequence < sequence; ++exploit) {
      const auto from = checkpoints.find(exploit->checkpoint);
      if (from == checkpoints.end()) return fault("an exploit continues from {}, which never was", exploit->checkpoint);
      steps[exploit->target] = from->second;
    }
  };
  for (const store::ResultRow& row : record_.results) {
    follow_exploits_before(row.sequence);
    if (!row.checkpoint.empty() && row.checkpoint != tune::kOfferedCheckpoint)
      checkpoints[fmt::format("{}/checkpoint_{:06d}", directories[row.trial], made[row.trial]++)] = row.step;
    std::int64_t& last = steps[row.trial];
    if (row.repeated != (row.step <= last) || row.step > last + 1)
      fault("trial {}: attempt {}, step {} comes after step {} and is {}marked as repeated", row.trial, row.attempt,
            row.step, last, row.repeated ? "" : "not ");
    last = std::max(last, row.step);
  }
}

void Inspection::check_listed_checkpoints() {
  for (const store::CheckpointRow& row : record_.checkpoints) {
    const fs::path files = storage::directory_with_files(experiment_ / row.directory);
    if (files.empty()) continue;  // they are in an object storage
    const auto state = read_state(files);
    if (!state) {
      fault("the store lists {}, which {}", row.directory,
            fs::exists(experiment_ / row.directory) ? "cannot be loaded" : "does not exist");
    } else if (state->step != row.step) {
      fault("{} is of step {} and holds step {}", row.directory, row.step, state->step);
    }
  }
}

// Expects the callback to have counted each stored result once.
void Inspection::check_callback() {
  std::int64_t seen = 0;
  if (!record_.callback_states.empty()) {
    const Value states = base::parse_json(record_.callback_states, "the states of callbacks");
    seen = Config(states.items().at(0)).get<std::int64_t>("state");
  }
  const auto stored = std::ranges::count(record_.results, false, &store::ResultRow::repeated);
  if (seen != stored) fault("a callback has seen {} results, and {} are stored", seen, stored);
}

void Inspection::check_trials() {
  if (std::ssize(record_.trials) != setting_.population)
    fault("there are {} trials of {}", record_.trials.size(), setting_.population);
  std::int64_t failures = 0;
  for (const store::TrialRow& trial : record_.trials) {
    if (trial.status == "ERROR") {
      if (setting_.max_failures < 0)
        fault("trial {} failed for good, although it is tried again without limit: {}", trial.trial, trial.error);
      failures += setting_.max_failures + 1;
      continue;
    }
    const auto shown = shown_results(trial.trial);
    if (trial.status != "TERMINATED" || shown.empty() || shown.back()->step != setting_.steps)
      fault("trial {} ended as {} after step {} ({})", trial.trial, trial.status,
            shown.empty() ? 0 : shown.back()->step, trial.error);
  }
  if (failures > expectation_.worker_deaths)
    fault("trials failed for good, although workers were disturbed {} times only: {}", expectation_.worker_deaths,
          record_.trials.front().error);
}

// Expects the files on disk to be those that the store lists.
void Inspection::check_directories() {
  std::set<std::string> listed;
  for (const store::CheckpointRow& row : record_.checkpoints) listed.insert(row.directory);
  for (const store::TrialRow& trial : record_.trials) {
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(experiment_ / trial.directory, none)) {
      const std::string name = entry.path().filename();
      if (name.starts_with("checkpoint_") && !listed.contains(trial.directory + "/" + name))
        fault("{} is not listed in the store", entry.path().string());
    }
  }
  const bool needs_objects =
      std::ranges::any_of(record_.trials, [](const auto& trial) { return trial.status == "ERROR"; });
  if (fs::exists(experiment_ / "objects") != needs_objects)
    fault("the experiment's object {}", needs_objects ? "is gone, and trials that failed may need it" : "is left");
}

std::vector<const store::ResultRow*> Inspection::shown_results(std::int64_t trial) const {
  std::vector<const store::ResultRow*> shown;
  for (const store::ResultRow& row : record_.results)
    if (row.trial == trial && !row.repeated) shown.push_back(&row);
  return shown;
}

// Returns the lines of a file below the experiment's directory; expects the last one to be whole.
std::vector<std::string> Inspection::lines_of(const fs::path& file) {
  std::ifstream stream(experiment_ / file);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line); lines.push_back(line)) {
    if (stream.eof()) fault("the last line of {} is torn", file.string());
  }
  return lines;
}

// Expects result.json, progress.csv and the TensorBoard file to have each step of each lineage once, with the reported
// values.
void Inspection::check_result_files() {
  for (const store::TrialRow& trial : record_.trials) {
    const auto shown = shown_results(trial.trial);
    const std::vector<std::string> json = lines_of(fs::path(trial.directory) / "result.json");
    const std::vector<std::string> csv = lines_of(fs::path(trial.directory) / "progress.csv");
    if (json.size() != shown.size() || csv.size() != shown.size() + (shown.empty() ? 0 : 1)) {
      fault("trial {}: result.json has {} lines and progress.csv {}, for {} results", trial.trial, json.size(),
            csv.size(), shown.size());
      continue;
    }
    for (std::size_t i = 0; i < shown.size(); ++i) {
      // A row of result.json begins with the metrics as stored, a row of progress.csv with the first metric.
      const std::string metrics = shown[i]->metrics.substr(0, shown[i]->metrics.size() - 1);
      const Config reported(base::parse_json(shown[i]->metrics, "a result").dict());
      std::string score;
      base::append_python_float(score, reported.get<double>("score"));
      if (!json[i].starts_with(metrics) || !csv[i + 1].starts_with(score + ","))
        fault("trial {}: line {} of result.json or progress.csv is not step {}", trial.trial, i + 1, shown[i]->step);
    }
    const bool ended = trial.status == "TERMINATED" || trial.status == "ERROR";
    check_events(experiment_ / trial.directory, shown, ended);
  }
}

// Expects each result, then the session of a trial that has ended.
void Inspection::check_events(const fs::path& directory, const std::vector<const store::ResultRow*>& shown,
                              bool ended) {
  std::vector<test_support::EventValue> values;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(directory, none)) {
    if (!entry.path().filename().string().starts_with("events.out.tfevents.")) continue;
    for (test_support::EventValue& value : test_support::event_values(read_text(entry.path()))) {
      const bool of_session = value.tag.starts_with("_hparams_/");
      if (of_session || value.tag == "ray/tune/score") values.push_back(std::move(value));
    }
  }
  const std::size_t of_session = ended && !shown.empty() ? 3 : 0;
  if (values.size() != shown.size() + of_session)
    return fault("{} has {} scores and parts of a session for TensorBoard, for {} results", directory.string(),
                 values.size(), shown.size());
  for (std::size_t i = 0; i < shown.size(); ++i) {
    const Config reported(base::parse_json(shown[i]->metrics, "a result").dict());
    if (values[i].wall_time != shown[i]->time || values[i].scalar != static_cast<float>(reported.get<double>("score")))
      fault("{}: score {} for TensorBoard is not that of step {}", directory.string(), i + 1, shown[i]->step);
  }
}

void Inspection::check_exploits() {
  const std::size_t lines = lines_of("pbt_global.txt").size();
  if (lines != record_.exploits.size())
    fault("pbt_global.txt has {} lines for {} exploits", lines, record_.exploits.size());
}

Outcome to_outcome(const Record& record, const fs::path& experiment) {
  Outcome outcome{.trials = {}, .pbt_global = read_text(experiment / "pbt_global.txt")};
  for (const store::TrialRow& trial : record.trials) outcome.trials.push_back({trial.config, 0});
  for (const store::ResultRow& row : record.results)
    if (!row.repeated)
      outcome.trials.at(static_cast<std::size_t>(row.trial)).score =
          Config(base::parse_json(row.metrics, "a result").dict()).get<double>("score");
  return outcome;
}

void Inspection::check_outcome() {
  if (!expectation_.outcome) return;
  const Outcome outcome = to_outcome(record_, experiment_);
  const char* const when = record_.lost_checkpoints ? kAfterALoss : "";
  if (outcome.pbt_global != expectation_.outcome->pbt_global)
    fault("pbt_global.txt is not that of an undisturbed run{}:\n{}and not\n{}", when, outcome.pbt_global,
          expectation_.outcome->pbt_global);
  if (outcome.trials != expectation_.outcome->trials)
    fault("configs or last scores are not those of an undisturbed run{}", when);
}

void Inspection::check_lock() {
  if (const auto holder = store::ExperimentLock::holder(experiment_)) fault("the lock is held by {}", *holder);
}

}  // namespace

std::vector<std::string> faults_of(const fs::path& experiment, const Setting& setting, const Expectation& expectation) {
  try {
    return Inspection(experiment, setting, expectation).run();
  } catch (const std::exception& error) {
    return {std::string("the experiment cannot be read: ") + error.what()};
  }
}

std::vector<std::string> faults_of_readers(const fs::path& experiment, const Setting& setting,
                                           const fs::path& program) {
  const TemporaryDirectory copy;
  fs::create_directory(copy / "experiment");
  for (const char* name : {"experiment.db", "experiment.db-wal"})
    if (fs::exists(experiment / name)) fs::copy_file(experiment / name, copy / "experiment" / name);
  std::vector<std::string> faults;
  bool has_results = false;
  try {
    const tune::ResultGrid grid = tune::ResultGrid::from_directory(copy / "experiment");
    const auto population = static_cast<std::size_t>(setting.population);
    if (grid.size() != 0 && grid.size() != population)
      faults.push_back(fmt::format("a reader finds {} trials of {}", grid.size(), population));
    for (const tune::Result& result : grid) has_results |= !result.metrics_history().empty();
  } catch (const std::exception& error) {
    faults.push_back(std::string("ResultGrid::from_directory throws: ") + error.what());
  }
  if (program.empty()) return faults;
  for (const char* arguments : {"ls .", "show experiment", "best experiment", "export experiment --all"}) {
    if (!has_results && std::string_view(arguments).starts_with("best")) continue;  // there is no best trial
    const fs::path said = copy / "said";
    const std::string command =
        fmt::format("cd '{}' && '{}' {} > '{}' 2>&1", copy.path().string(), program.string(), arguments, said.string());
    std::ifstream output;
    if (const int code = std::system(command.c_str()); code != 0) {
      output.open(said);
      faults.push_back(fmt::format("cadre {} ends with {}: {}", arguments, WEXITSTATUS(code),
                                   std::string(std::istreambuf_iterator<char>(output), {})));
    }
  }
  return faults;
}

Outcome outcome_of(const fs::path& experiment) { return to_outcome(read_record(experiment), experiment); }

}  // namespace cadre::survival
