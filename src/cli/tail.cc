// cadre tail: the latest results of an experiment or a training run, and the next ones as they come.
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <cstdio>
#include <ctime>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/json.h"
#include "cadre/error.h"
#include "cli/commands.h"
#include "cli/find.h"
#include "cli/output.h"
#include "cli/training_run.h"
#include "loggers/result_keys.h"
#include "store/experiment_lock.h"
#include "store/experiment_reader.h"
#include "tune/result_keys.h"

namespace cadre::cli {
namespace {

namespace result_key = loggers::result_key;
constexpr auto kPeriodOfResults = std::chrono::milliseconds(250);

struct TailOptions {
  std::string experiment = {};
  std::string trial = {};
  std::size_t lines = 10;
  std::vector<std::string> metrics = {};
  bool follow = false;
  bool json = false;
};

// One result, and the trial that reported it.
struct Reported {
  std::int64_t sequence = 0;
  double time = 0;  // seconds since 1970
  std::string trial_id = {};
  std::string metrics = {};  // JSON, which is read for what is printed only
};

class Tail {
 public:
  explicit Tail(const TailOptions& options) : options_(options), found_(find_directory(options.experiment)) {
    if (options.follow && found_.copy)
      throw InvalidArgument(options.experiment +
                            " is read in a copy of what was published last, which does not grow: follow it in its "
                            "directory on the machine that runs it");
    is_run_ = is_training_run(found_.directory);
    if (options.trial.empty()) return;
    if (is_run_) throw InvalidArgument(options.experiment + " is a training run, and has no trials");
    trial_id_ = find_trial(open_experiment(found_), options.trial).trial_id;
  }

  // Prints the last results.
  void show_last() {
    std::deque<Reported> last;
    read([&](Reported reported) {
      last.push_back(std::move(reported));
      if (last.size() > options_.lines) last.pop_front();
    });
    for (const Reported& reported : last) print(reported);
    flush();
  }
  // Prints what comes, until no process runs the experiment.
  void follow() {
    for (;;) {
      const bool runs = store::ExperimentLock::holder(found_.directory).has_value();
      read([&](const Reported& reported) { print(reported); });
      flush();
      if (!runs) return;
      std::this_thread::sleep_for(kPeriodOfResults);
    }
  }
  bool has_printed() const { return has_printed_; }
  // Says on the standard error which of the metrics that were asked for no printed result has.
  void name_missing_metrics() const {
    if (!has_printed_ || options_.json) return;
    for (const std::string& name : options_.metrics) {
      if (seen_.contains(name)) continue;
      std::fprintf(stderr, "cadre: none of these results has the metric %s; they have %s\n", shown(name).c_str(),
                   shown(fmt::format("{}", fmt::join(there_, ", "))).c_str());
    }
  }

 private:
  // Visits the results since the last call.
  template <class Visit>
  void read(const Visit& visit) {
    const store::ExperimentReader reader(found_.directory, store::ExperimentReader::Check::rows);
    const auto on_result = [&](const store::ResultRow& row) {
      after_ = row.sequence;
      if (row.repeated) return;
      const std::string id = id_of(reader, row.trial);
      if (!trial_id_.empty() && id != trial_id_) return;
      visit(Reported{row.sequence, row.time, id, row.metrics});
    };
    const auto on_event = [&](const store::EventRow& row) { after_ = row.sequence; };
    reader.visit({.result = on_result, .event = on_event, .decision = [](const store::DecisionRow&) {}}, after_);
  }

  std::string id_of(const store::ExperimentReader& reader, std::int64_t trial) {
    if (is_run_) return "";
    if (!ids_.contains(trial)) {
      for (const store::TrialRow& row : reader.trials()) ids_[row.trial] = row.trial_id;
    }
    return ids_[trial];
  }

  void print(const Reported& reported) {
    has_printed_ = true;
    const Metrics metrics(base::parse_json(reported.metrics, "a result").dict());
    if (options_.json) {
      Dict document{{"time", reported.time}};
      if (!is_run_) document.emplace_back("trial_id", reported.trial_id);
      document.emplace_back("metrics", metrics.dict());
      return write(base::to_json(document) + "\n");
    }
    std::string line = fmt::format("{:%H:%M:%S}", fmt::localtime(static_cast<std::time_t>(reported.time)));
    if (!is_run_) line += "  " + shown(reported.trial_id);
    if (const Value* const iteration = metrics.find(result_key::training_iteration))
      line += fmt::format("  {:>5}", value_text(*iteration));
    std::vector<std::string> numbers = tune::number_paths(metrics);
    for (const std::string& name : options_.metrics.empty() ? numbers : options_.metrics) {
      const Value* const value = metrics.find(name);
      if (value == nullptr) continue;
      seen_.insert(name);
      line += fmt::format("  {}={}", shown(name), shown(value_text(*value)));
    }
    there_ = std::move(numbers);
    write(line + "\n");
  }

  static void write(const std::string& text) {
    if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) fail();
  }
  static void flush() {
    if (std::fflush(stdout) != 0) fail();
  }
  [[noreturn]] static void fail() { throw StorageError("cannot write the results to standard output"); }

  const TailOptions& options_;
  Found found_;
  bool is_run_ = false;
  std::string trial_id_ = {};  // the only one; empty: all
  std::int64_t after_ = 0;     // sequence number of the last row that was read
  std::map<std::int64_t, std::string> ids_ = {};
  bool has_printed_ = false;
  std::set<std::string> seen_ = {};      // names of values that were printed
  std::vector<std::string> there_ = {};  // the numbers of the last result
};

void run(const TailOptions& options) {
  Tail tail(options);
  tail.show_last();
  tail.name_missing_metrics();
  if (options.follow) tail.follow();
  if (!tail.has_printed()) std::fprintf(stderr, "cadre: nothing was reported\n");
}

}  // namespace

void add_tail(Command& program) {
  const auto options = std::make_shared<TailOptions>();
  Command command = program.add_command("tail", "Show the latest results");
  command.option("experiment", &options->experiment, "Its directory, name or URI, or a training run's").required();
  command.option("trial", &options->trial, "One trial: its id or number [all]");
  command.flag("-f,--follow", &options->follow, "Go on while the experiment runs, until it ends");
  const auto lines = std::make_shared<std::uint64_t>(options->lines);
  command.option("-n,--lines", lines.get(), "Begin with so many results").show_default();
  command.option("--metrics", &options->metrics, "Only these: a,b").separated_by(',');
  command.flag("--json", &options->json, "Each result as a line of JSON, with all metrics");
  command.footer(
      "A line has the time of the report, the trial, its training_iteration and its\nnumbers. What workers have "
      "printed is in `cadre logs`.");
  command.on_call([options, lines] {
    options->lines = *lines;
    run(*options);
  });
}

}  // namespace cadre::cli
