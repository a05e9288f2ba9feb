#include "tune/console/log_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/host_object.h"
#include "base/native_stack.h"
#include "base/reason_line.h"
#include "loggers/result_log.h"
#include "tune/console/status.h"
#include "tune/console/trial_table.h"
#include "tune/result_keys.h"

namespace cadre::tune::console {
namespace {

constexpr std::int64_t kFewTrials = 20;
constexpr std::size_t kLongestPart = 1000;  // columns of a config, of results and of an error

std::string shortened(const std::string& text, base::Encoding encoding) {
  return base::first_columns(base::printable(text, encoding), kLongestPart, encoding);
}

std::string iterations_text(std::int64_t count) {
  return fmt::format("{} {}", count, count == 1 ? "iteration" : "iterations");
}

// Returns "mean_accuracy=0.95, loss=0.1", or nothing.
std::string numbers_text(const Metrics& metrics, const LogDetail& detail) {
  std::vector<std::string> names = number_paths(metrics);
  const auto main = std::ranges::find(names, detail.metric);
  if (main != names.end()) std::rotate(names.begin(), main, main + 1);
  std::string text;
  for (const std::string& name : names) {
    text += fmt::format("{}{}={}", text.empty() ? "" : ", ", base::printable(name, detail.encoding),
                        value_cell(metrics.find(name), detail.encoding).text);
  }
  return shortened(text, detail.encoding);
}

// Returns the lines of the message, all but the first indented.
std::string lines_text(const std::string& message, base::Encoding encoding) {
  std::string brief = base::without_native_stacks(message);
  while (brief.ends_with('\n')) brief.pop_back();
  std::string text;
  std::size_t count = 0;
  for (std::size_t begin = 0; begin <= brief.size();) {
    const std::size_t end = std::min(brief.find('\n', begin), brief.size());
    if (++count > kMostErrorLines) return text + "\n  ...";
    text += (count == 1 ? "" : "\n  ") + shortened(brief.substr(begin, end - begin), encoding);
    begin = end + 1;
  }
  return text;
}

std::string file_text(const Trial& trial, const std::string& directory, base::Encoding encoding) {
  return fmt::format("  {}/{}/{}", base::printable(directory, encoding), trial.directory, loggers::kErrorFile);
}

// Returns the length of a prefix of `text` that differs between trials: the trial's directory, or an address.
std::size_t varying_length(std::string_view text, const std::string& directory) {
  if (text.starts_with(directory)) return directory.size();
  if (!text.starts_with("0x")) return 0;
  return std::min(text.find_first_not_of("0123456789abcdef", 2), text.size());
}

class Narrator {
 public:
  Narrator(const Experiment& experiment, const std::string& directory, const LogDetail& detail)
      : experiment_(experiment), directory_(directory), detail_(detail) {}

  std::string operator()(const Say& say) const { return says() ? say.text : ""; }
  std::string operator()(const LogError& error) const {
    return says() ? failure_text(trial(error.trial), error.iteration, error.message) : "";
  }
  std::string operator()(const LogEnd& end) const {
    const Trial& about = trial(end.trial);
    const std::int64_t iteration = training_iteration(end.last_result);
    // With verbose 0 only a final failure is logged, because a retry may still have succeeded.
    if (end.status == TrialStatus::error) return says() ? "" : failure_text(about, iteration, end.error);
    if (!says()) return {};
    const std::string numbers = numbers_text(end.last_result, detail_);
    return fmt::format("Trial {} {} after {}{}{}", about.id,
                       end.status == TrialStatus::stopped ? "stopped early" : "completed", iterations_text(iteration),
                       numbers.empty() ? "" : ": ", numbers);
  }
  std::string operator()(const Launch& launch) const {
    if (!says()) return {};
    const std::string& id = trial(launch.trial).id;
    if (!launch.checkpoint.empty()) {
      return fmt::format("Trial {} restored from {} at training_iteration {}", id,
                         base::printable(launch.checkpoint, detail_.encoding),
                         training_iteration(launch.checkpoint_metrics));
    }
    if (detail_.verbose < 2 && detail_.trials > kFewTrials) return {};
    return fmt::format("Trial {} started with configuration {}", id,
                       shortened(to_json(base::without_host_objects(launch.config.value())), detail_.encoding));
  }
  std::string operator()(const TakeOver& take_over) const { return (*this)(take_over.start); }
  std::string operator()(const LogResult& result) const {
    if (detail_.verbose < 2) return {};
    const Trial& about = trial(result.trial);
    const std::int64_t iteration = training_iteration(result.metrics);
    const std::string numbers = numbers_text(result.metrics, detail_);
    std::string text =
        fmt::format("Trial {} finished iteration {}{}{}", about.id, iteration, numbers.empty() ? "" : ": ", numbers);
    if (!result.checkpoint_dir_name.empty())
      text += fmt::format("\nTrial {} saved a checkpoint for iteration {} at {}/{}", about.id, iteration,
                          about.directory, result.checkpoint_dir_name);
    return text;
  }
  template <class Other>
  std::string operator()(const Other&) const {
    return {};
  }

 private:
  bool says() const { return detail_.verbose > 0; }
  // Logs a reason in full only for the first trial that failed for it.
  std::string failure_text(const Trial& about, std::int64_t iteration, const std::string& message) const {
    if (detail_.said_errors != nullptr) {
      const auto [said, is_new] = detail_.said_errors->emplace(reason_of(about, message), about.id);
      if (!is_new && detail_.verbose < 2 && detail_.trials > kFewTrials) return {};
      if (!is_new)
        return fmt::format("Trial {} errored after {}, for the same reason as trial {}{}", about.id,
                           iterations_text(iteration), said->second, said->second == about.id ? " before" : "");
    }
    return error_text(about, iteration, message, directory_, detail_.encoding);
  }
  const Trial& trial(TrialIndex index) const { return experiment_.trials().at(index); }

  const Experiment& experiment_;
  const std::string& directory_;
  const LogDetail& detail_;
};

}  // namespace

std::string log_text(const Action& action, const Experiment& experiment, const std::string& directory,
                     const LogDetail& detail) {
  return std::visit(Narrator(experiment, directory, detail), action);
}

std::string error_text(const Trial& trial, std::int64_t iteration, const std::string& message,
                       const std::string& directory, base::Encoding encoding) {
  return fmt::format("Trial {} errored after {}: {}\n{}", trial.id, iterations_text(iteration),
                     lines_text(message, encoding), file_text(trial, directory, encoding));
}

std::string reason_of(const Trial& trial, const std::string& message) {
  std::string reason;
  std::string_view left = message;
  while (!left.empty()) {
    const std::size_t length = varying_length(left, trial.directory);
    reason += length > 0 ? '*' : left.front();
    left.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return reason;
}

std::string errors_text(const std::vector<const Trial*>& trials, const std::string& directory,
                        base::Encoding encoding) {
  const Trial& first = *trials.front();
  const std::string reason = base::reason_line(first.error);
  if (trials.size() == 1) return error_text(first, training_iteration(first.last_result), reason, directory, encoding);
  return fmt::format("{} trials failed: {}\n{} of trial {}, and of others", trials.size(), shortened(reason, encoding),
                     file_text(first, directory, encoding), first.id);
}

}  // namespace cadre::tune::console
