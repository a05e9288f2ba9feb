// cadre logs: the output of the workers of an experiment or a training run.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "cadre/error.h"
#include "cli/commands.h"
#include "cli/find.h"
#include "cli/output.h"
#include "cli/printed_output.h"
#include "cli/training_run.h"
#include "storage/remote_directory.h"
#include "store/experiment_lock.h"

namespace cadre::cli {
namespace fs = std::filesystem;
namespace {

constexpr auto kPeriod = std::chrono::milliseconds(100);
constexpr auto kPeriodOfWorkers = std::chrono::seconds(1);  // between searches for new workers
constexpr std::string_view kRankPrefix = "rank_";

struct LogsOptions {
  std::string experiment = {};
  std::string worker = {};
  std::optional<std::size_t> lines = {};
  bool follow = false;
  bool only_out = false;
  bool only_err = false;
};

// A worker: its directory, and the prefix of its lines.
struct Source {
  std::string name = {};
  fs::path directory = {};
};

bool is_number(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](unsigned char c) { return std::isdigit(c) != 0; });
}

std::vector<std::string> sub_directories(const fs::path& directory) {
  std::vector<std::string> names;
  std::error_code unreadable;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory, unreadable)) {
    if (entry.is_directory(unreadable) && !entry.is_symlink(unreadable)) names.push_back(entry.path().filename());
  }
  std::ranges::sort(names);
  return names;
}

// Returns the ranks of a training run in numerical order.
std::vector<Source> ranks_in(const fs::path& run, const std::string& before) {
  std::vector<std::pair<std::size_t, std::string>> ranks;
  for (const std::string& name : sub_directories(run)) {
    const std::string number = name.substr(std::min(kRankPrefix.size(), name.size()));
    if (name.starts_with(kRankPrefix) && is_number(number)) ranks.emplace_back(number.size(), number);
  }
  std::ranges::sort(ranks);
  std::vector<Source> sources;
  for (const auto& [digits, number] : ranks)
    sources.push_back({before + "rank " + number, run / (std::string(kRankPrefix) + number)});
  return sources;
}

// Returns a trial's own worker, and the ranks of a training run that it has started.
std::vector<Source> workers_of_trial(const fs::path& trial, const std::string& id) {
  std::vector<Source> sources{{"trial " + id, trial}};
  for (const std::string& name : sub_directories(trial)) {
    for (Source& rank : ranks_in(trial / name, "trial " + id + " ")) sources.push_back(std::move(rank));
  }
  return sources;
}

// Returns the trial id in a directory name such as "00003" or "00003_lr=0.1"; empty if there is none.
std::optional<std::string> trial_of_directory(const std::string& name) {
  const std::string id = name.substr(0, name.find('_'));
  return id.size() >= 5 && is_number(id) ? std::optional(id) : std::nullopt;
}

// The workers whose output is shown. New ones may start while an experiment runs.
class Workers {
 public:
  explicit Workers(const LogsOptions& options)
      : found_(find_directory(options.experiment)), outputs_(directory_of_outputs(found_)) {
    is_run_ = is_training_run(found_.directory);
    if (options.worker.empty()) return;
    if (is_run_) {
      rank_ = options.worker.starts_with(kRankPrefix) ? options.worker.substr(kRankPrefix.size()) : options.worker;
      if (!is_number(rank_) || !fs::is_directory(outputs_ / (std::string(kRankPrefix) + rank_)))
        throw NotFound(fmt::format("there is no rank \"{}\" in {}", options.worker, place_text(found_.directory)));
    } else {
      const tune::ResultGrid grid = open_experiment(found_);
      const tune::Result& trial = options.worker == "best" ? grid.get_best_result() : find_trial(grid, options.worker);
      trial_ = trial.trial_id;
      trial_directory_ = outputs_ / trial.path.filename();
    }
  }

  const fs::path& directory() const { return found_.directory; }
  // Returns true if what was printed is in a storage, and cannot be read here.
  bool are_elsewhere() const { return found_.copy && outputs_ == found_.directory; }
  bool is_one() const { return !rank_.empty() || !trial_.empty(); }

  std::vector<Source> now() const {
    if (!trial_.empty()) return workers_of_trial(trial_directory_, trial_);
    std::vector<Source> sources;
    if (is_run_) {
      sources = ranks_in(outputs_, "");
      if (!rank_.empty()) std::erase_if(sources, [&](const Source& source) { return source.name != "rank " + rank_; });
      return sources;
    }
    for (const std::string& name : sub_directories(outputs_)) {
      const std::optional<std::string> id = trial_of_directory(name);
      if (!id) continue;
      for (Source& source : workers_of_trial(outputs_ / name, *id)) sources.push_back(std::move(source));
    }
    return sources;
  }

 private:
  // A copy of what is published has no output.
  static fs::path directory_of_outputs(const Found& found) {
    const auto uri = found.copy ? storage::published_place(found.directory) : std::nullopt;
    const fs::path published = uri ? storage::directory_of(*uri) : fs::path();
    return published.empty() ? found.directory : published;
  }

  Found found_;
  fs::path outputs_;  // has the workers' directories
  bool is_run_ = false;
  std::string rank_ = {};
  std::string trial_ = {};
  fs::path trial_directory_ = {};
};

// Writes lines to one stream: printable on a terminal, otherwise unchanged.
class Printer {
 public:
  explicit Printer(FILE* stream) : stream_(stream), is_terminal_(::isatty(::fileno(stream)) == 1) {}

  void print(const std::string& name, std::string_view line) {
    if (!name.empty()) write(fmt::format("({}) ", shown(name)));
    write(is_terminal_ ? shown(line) : std::string(line));
    write("\n");
    has_printed_ = true;
  }
  void flush() {
    if (std::fflush(stream_) != 0) fail();
  }
  bool has_printed() const { return has_printed_; }

 private:
  void write(std::string_view text) {
    if (std::fwrite(text.data(), 1, text.size(), stream_) != text.size()) fail();
  }
  [[noreturn]] static void fail() { throw StorageError("cannot write what was printed"); }

  FILE* stream_;
  bool is_terminal_;
  bool has_printed_ = false;
};

class Logs {
 public:
  explicit Logs(const LogsOptions& options) : options_(options), workers_(options) {}

  // Prints the new output; `last`: including unfinished lines.
  void show(bool last) {
    for (auto& [name, out, err] : shown_) {
      if (out) out->show_new(last, [&](std::string_view line) { out_.print(name, line); });
      if (err) err->show_new(last, [&](std::string_view line) { err_.print(name, line); });
    }
    out_.flush();
    err_.flush();
  }
  void look_for_workers() {
    for (const Source& source : workers_.now()) {
      if (!known_.insert(source.directory).second) continue;
      const bool plain = workers_.is_one() && known_.size() == 1;
      Shown& shown = shown_.emplace_back(Shown{.name = plain ? "" : source.name});
      const auto lines = has_looked_ ? std::nullopt : options_.lines;  // all of a worker that starts later
      if (!options_.only_err) shown.out.emplace(source.directory / "stdout", lines);
      if (!options_.only_out) shown.err.emplace(source.directory / "stderr", lines);
    }
    has_looked_ = true;
  }
  void follow() {
    for (int turns = 0;; ++turns) {
      const bool runs = store::ExperimentLock::holder(workers_.directory()).has_value();
      if (turns % (kPeriodOfWorkers / kPeriod) == 0 || !runs) look_for_workers();
      show(!runs);
      if (!runs) return;
      std::this_thread::sleep_for(kPeriod);
    }
  }
  // Says why nothing is shown, if nothing is.
  void explain() const {
    if (out_.has_printed() || err_.has_printed()) return;
    const std::string reason =
        workers_.are_elsewhere()
            ? fmt::format("what workers have printed is in the files stdout and stderr of their directories in {}",
                          place_text(workers_.directory()))
            : "nothing was printed";
    std::fprintf(stderr, "cadre: %s\n", shown(reason).c_str());
  }

 private:
  struct Shown {
    std::string name = {};  // prefix of its lines; empty: only one worker is shown
    std::optional<PrintedOutput> out = {};
    std::optional<PrintedOutput> err = {};
  };

  const LogsOptions& options_;
  Workers workers_;
  std::set<fs::path> known_ = {};
  std::vector<Shown> shown_ = {};
  bool has_looked_ = false;
  Printer out_{stdout};
  Printer err_{stderr};
};

void run(const LogsOptions& options) {
  Logs logs(options);
  if (options.follow) {
    logs.follow();
  } else {
    logs.look_for_workers();
    logs.show(true);
  }
  logs.explain();
}

}  // namespace

void add_logs(Command& program) {
  const auto options = std::make_shared<LogsOptions>();
  Command command = program.add_command("logs", "Show what workers have printed");
  command.option("experiment", &options->experiment, "Its directory, name or URI, or a training run's").required();
  command.option("worker", &options->worker, "One trial (id, number or \"best\") or rank [all]");
  command.flag("-f,--follow", &options->follow, "Go on while the experiment runs, until it ends");
  command.option("-n,--lines", &options->lines, "Begin with so many lines of each file [all]");
  const Option out = command.flag("--stdout", &options->only_out, "Only what they wrote to standard output");
  command.flag("--stderr", &options->only_err, "Only what they wrote to standard error").excludes(out);
  command.footer(
      "Standard output and standard error of the workers go to those of this program.\n"
      "Where several workers are shown, each line begins with the name of its own.");
  command.on_call([options] { run(*options); });
}

}  // namespace cadre::cli
