#include "tune/console/log_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "run/loggers/result_log.h"
#include "tune/console/status.h"
#include "tune/console/trial_table.h"
#include "tune/result_keys.h"

namespace cadre::tune::console {
namespace {

constexpr std::int64_t kFewTrials = 20;
constexpr std::size_t kLongestText = 1000;  // columns of a config, of results and of an error

std::string shortened(const std::string& text, Encoding encoding) {
  return first_columns(printable(text, encoding), kLongestText, encoding);
}

std::string iterations_text(std::int64_t count) {
  return fmt::format("{} {}", count, count == 1 ? "iteration" : "iterations");
}

// "mean_accuracy=0.95, loss=0.1", or nothing.
std::string numbers_text(const Metrics& metrics, const LogDetail& detail) {
  std::vector<std::string> names = number_paths(metrics);
  const auto main = std::ranges::find(names, detail.metric);
  if (main != names.end()) std::rotate(names.begin(), main, main + 1);
  std::string text;
  for (const std::string& name : names) {
    text += fmt::format("{}{}={}", text.empty() ? "" : ", ", printable(name, detail.encoding),
                        value_cell(metrics.find(name), detail.encoding).text);
  }
  return shortened(text, detail.encoding);
}

class Narrator {
 public:
  Narrator(const Experiment& experiment, const std::string& directory, const LogDetail& detail)
      : experiment_(experiment), directory_(directory), detail_(detail) {}

  std::string operator()(const Say& say) const { return says() ? say.text : ""; }
  std::string operator()(const LogError& error) const {
    return says() ? error_text(trial(error.trial), error.message, directory_, detail_.encoding) : "";
  }
  std::string operator()(const RecordDecision& decision) const {
    const Trial& about = trial(decision.trial);
    // A quiet console has said nothing of it as long as it could be tried again.
    if (decision.kind == DecisionKind::fail && !says())
      return error_text(about, about.error, directory_, detail_.encoding);
    if (decision.kind != DecisionKind::end || !says()) return {};
    const std::string numbers = numbers_text(about.last_result, detail_);
    return fmt::format("Trial {} completed after {}{}{}", about.id,
                       iterations_text(training_iteration(about.last_result)), numbers.empty() ? "" : ": ", numbers);
  }
  std::string operator()(const Launch& launch) const {
    if (!says()) return {};
    const std::string& id = trial(launch.trial).id;
    if (!launch.checkpoint.empty()) {
      return fmt::format("Trial {} restored from {} at training_iteration {}", id,
                         printable(launch.checkpoint, detail_.encoding), training_iteration(launch.checkpoint_metrics));
    }
    if (detail_.verbose < 2 && detail_.trials > kFewTrials) return {};
    return fmt::format("Trial {} started with configuration {}", id,
                       shortened(to_json(launch.config.dict()), detail_.encoding));
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

std::string error_text(const Trial& trial, const std::string& message, const std::string& directory,
                       Encoding encoding) {
  return fmt::format("Trial {} errored after {}: {}\n  {}/{}/{}", trial.id,
                     iterations_text(training_iteration(trial.last_result)),
                     shortened(message.substr(0, message.find('\n')), encoding), printable(directory, encoding),
                     trial.directory, run::kErrorFile);
}

}  // namespace cadre::tune::console
