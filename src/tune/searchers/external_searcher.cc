#include "cadre/tune/searchers/external_searcher.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <atomic>
#include <cstddef>
#include <map>
#include <utility>

#include "base/json.h"
#include "base/line_program.h"
#include "cadre/error.h"
#include "cadre/stored.h"
#include "cadre/tune/tuner.h"
#include "control/objective.h"
#include "control/option_checks.h"
#include "tune/held_options.h"

namespace cadre::tune {
namespace {

constexpr std::size_t kMostNewsBytes = std::size_t{16} << 20U;

class ProgramSearcher final : public Searcher {
 public:
  ProgramSearcher(ExternalSearcher options, const SearcherSetting& setting)
      : options_(std::move(options)), begin_(base::to_json(Dict{{"begin", begin_of(setting)}})) {}

  std::optional<Config> suggest(TrialIndex trial) const override;
  bool is_finished() const override { return is_finished_; }
  void cancel() const override { cancelled_ = true; }
  void on_trial_add(TrialIndex trial, const Config& config) override {
    trials_[trial] = {.config = config};
    keep(line_of_add(trial));
  }
  void on_result(TrialIndex trial, const Metrics& result) override {
    keep(base::to_json(Dict{{"result", trial}, {"metrics", result.value()}}));
  }
  void on_trial_end(TrialIndex trial, TrialStatus status, const Metrics& last_result) override {
    trials_.at(trial).status = status;
    trials_.at(trial).last_result = last_result;
    keep(line_of_end(trial));
  }

 private:
  struct Member {
    Config config = {};
    std::optional<TrialStatus> status = {};  // empty: it has not ended
    Metrics last_result = {};
  };

  static Value begin_of(const SearcherSetting& setting) {
    return Dict{{"space", to_stored(setting.space)},
                {"metric", setting.metric.name},
                {"mode", control::to_string(setting.metric.mode.value_or(Mode::min))},
                {"seed", to_stored(setting.seed)},
                {"num_samples", setting.num_samples}};
  }
  std::string line_of_add(TrialIndex trial) const {
    return base::to_json(Dict{{"add", trial}, {"config", trials_.at(trial).config.value()}});
  }
  std::string line_of_end(TrialIndex trial) const {
    const Member& member = trials_.at(trial);
    return base::to_json(
        Dict{{"end", trial}, {"status", to_stored(member.status.value())}, {"metrics", member.last_result.value()}});
  }
  // Keeps a line until a suggestion is asked for, which may be never.
  void keep(std::string line) {
    if (!program_ || is_to_start_anew_) return;  // it will be told everything
    news_bytes_ += line.size();
    news_.push_back(std::move(line));
    is_to_start_anew_ = news_bytes_ > kMostNewsBytes;
    if (is_to_start_anew_) forget_news();
  }
  void forget_news() const {
    news_.clear();
    news_bytes_ = 0;
  }
  void start() const;
  void send(const std::string& line) const { program_->send(line, options_.timeout, cancelled_); }
  std::optional<Config> ask(TrialIndex trial) const;

  ExternalSearcher options_;
  std::string begin_;
  std::map<TrialIndex, Member> trials_ = {};
  // The program knows what it was told; everything else is in `trials_`, so that this is no state of the searcher.
  mutable std::unique_ptr<base::LineProgram> program_ = {};  // null: it is to be started
  mutable std::vector<std::string> news_ = {};               // lines to send
  mutable std::size_t news_bytes_ = 0;                       // of them
  mutable bool is_to_start_anew_ = false;                    // there were more lines than are kept
  mutable bool is_finished_ = false;                         // its last answer was that there is nothing more
  mutable std::atomic<bool> cancelled_ = false;
};

// Tells a new program everything.
void ProgramSearcher::start() const {
  forget_news();
  is_to_start_anew_ = false;
  program_.reset();
  program_ = std::make_unique<base::LineProgram>(options_.command);
  send(begin_);
  for (const auto& [trial, member] : trials_) send(line_of_add(trial));
  for (const auto& [trial, member] : trials_) {
    if (member.status) send(line_of_end(trial));
  }
}

std::optional<Config> ProgramSearcher::ask(TrialIndex trial) const {
  if (!program_ || is_to_start_anew_) start();
  for (const std::string& line : news_) send(line);
  forget_news();
  send(base::to_json(Dict{{"suggest", trial}}));
  const std::string text = program_->receive(options_.timeout, cancelled_);
  try {
    const Value answer = base::parse_json(text, "its answer");
    const Value* config = answer.is_dict() ? find_entry(answer.dict(), "config") : nullptr;
    const auto says = [&](std::string_view key) {
      const Value* value = answer.is_dict() ? find_entry(answer.dict(), key) : nullptr;
      return value != nullptr && *value == Value(true);
    };
    is_finished_ = says("finished");
    if (is_finished_ || says("wait")) return std::nullopt;
    if (config != nullptr && config->is_dict()) return Config(*config);
  } catch (const StorageError&) {  // reported below
  }
  throw base::ProgramFailed(
      "it answered neither {\"config\": {...}} nor {\"wait\": true} nor {\"finished\": true}, but " +
      text.substr(0, 200));
}

std::optional<Config> ProgramSearcher::suggest(TrialIndex trial) const {
  for (std::int64_t failures = 0;; ++failures) {
    try {
      return ask(trial);
    } catch (const base::ProgramFailed& failure) {
      program_.reset();
      if (failures < options_.max_restarts && !cancelled_) continue;
      throw EngineError(
          fmt::format("the searcher's program \"{}\" has failed {} times in a row, the last time because "
                      "{}; its standard error may say more. Restore the experiment when it works",
                      fmt::join(options_.command, " "), failures + 1, failure.what()));
    }
  }
}

}  // namespace

std::unique_ptr<Searcher> ExternalSearcher::make(const SearcherSetting& setting) const {
  return std::make_unique<ProgramSearcher>(*this, setting);
}

void ExternalSearcher::check(const TunerOptions&, Faults& faults) const {
  faults.unless(!command.empty(), "command", "name the program and its arguments: {\"python3\", \"searcher.py\"}");
  faults.unless(command.empty() || base::can_be_started(command), "command",
                fmt::format("{} is no executable file and none in PATH", command.empty() ? "" : command.front()));
  control::check_time_above_0("timeout", timeout, faults);
  faults.unless(max_restarts >= 0, "max_restarts", fmt::format("it is {}; it must be 0 or more", max_restarts));
}

template class detail::HeldOptionsOf<Searcher, SearcherSetting, ExternalSearcher>;

}  // namespace cadre::tune
