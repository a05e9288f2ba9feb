#include "cadre/tune/study.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "cadre/error.h"
#include "tune/options/check_search_space.h"
#include "tune/options/options.h"
#include "tune/searchers/variant_generator.h"

namespace cadre::tune {

struct Study::State {
  struct Member {
    Config config = {};
    Metrics result = {};
    bool succeeded = false;
  };

  explicit State(const TunerOptions& options)
      : space(options.param_space),
        config(options.tune_config),
        variants(space, config),
        searcher(config.searcher.make({.seed = config.seed,
                                       .space = space,
                                       .metric = {config.metric.name, config.mode},
                                       .num_samples = config.num_samples})) {}

  Suggestion make(const Config& values) {
    const auto index = static_cast<TrialIndex>(members.size());
    Variant variant = variants(index, values);
    if (!variant.fault.empty()) throw InvalidArgument(variant.fault);
    members.push_back({.config = std::move(variant.config)});
    open.push_back(index);
    searcher->on_trial_add(index, members.back().config);
    return {index, members.back().config};
  }

  void require_in_space(const Config& values, const std::string& whose) const {
    Faults faults;
    check_point(values.dict(), space, "value", faults);
    faults.throw_if_any(whose);
  }

  Member& require_open(TrialIndex trial) {
    if (!std::ranges::binary_search(open, trial)) throw NotFound(fmt::format("trial {} is not open", trial));
    return members[trial];
  }

  void end(TrialIndex trial, TrialStatus status) {
    const Member& member = require_open(trial);
    open.erase(std::ranges::lower_bound(open, trial));
    searcher->on_trial_end(trial, status, member.result);
  }

  Space space;
  TuneConfig config;
  VariantGenerator variants;
  std::unique_ptr<Searcher> searcher;
  std::vector<Member> members = {};
  std::vector<TrialIndex> open = {};
};

namespace {

TunerOptions checked(Space space, TuneConfig config) {
  TunerOptions options{.param_space = std::move(space), .tune_config = std::move(config)};
  std::vector<std::string> notes;
  options = resolve({}, std::move(options), notes);
  check_search(options);
  return options;
}

}  // namespace

Study::Study(Space space, TuneConfig config)
    : state_(std::make_unique<State>(checked(std::move(space), std::move(config)))) {}
Study::~Study() = default;
Study::Study(Study&&) noexcept = default;
Study& Study::operator=(Study&&) noexcept = default;

std::optional<Suggestion> Study::suggest() {
  State& state = *state_;
  const auto index = static_cast<TrialIndex>(state.members.size());
  if (state.variants.has_point(index)) return state.make({});
  const std::optional<Config> values = state.searcher->suggest(index);
  if (!values) return std::nullopt;
  state.require_in_space(*values,
                         fmt::format("trial {}, as the searcher {} suggests it,", index, state.config.searcher.name()));
  return state.make(*values);
}

Suggestion Study::add(const Config& config) {
  state_->require_in_space(config, "a trial with this config");
  return state_->make(config);
}

void Study::report(TrialIndex trial, const Metrics& result) {
  state_->require_open(trial).result = result;
  state_->searcher->on_result(trial, result);
}

void Study::observe(TrialIndex trial, const Metrics& result) {
  report(trial, result);
  state_->members[trial].succeeded = true;
  state_->end(trial, TrialStatus::terminated);
}

void Study::end(TrialIndex trial, TrialStatus status) { state_->end(trial, status); }

std::int64_t Study::num_trials() const { return std::ssize(state_->members); }
const std::vector<TrialIndex>& Study::open() const { return state_->open; }
const Config& Study::config(TrialIndex trial) const { return state_->members.at(trial).config; }
const Metrics& Study::result(TrialIndex trial) const { return state_->members.at(trial).result; }

std::optional<TrialIndex> Study::best() const {
  const TuneConfig& config = state_->config;
  std::optional<TrialIndex> best;
  double best_value = 0;
  for (TrialIndex trial = 0; trial < state_->members.size(); ++trial) {
    const State::Member& member = state_->members[trial];
    const std::optional<double> value = member.succeeded ? member.result.number(config.metric.name) : std::nullopt;
    if (!value || std::isnan(*value)) continue;
    const bool better = config.mode == Mode::min ? *value < best_value : *value > best_value;
    if (best && !better) continue;
    best = trial;
    best_value = *value;
  }
  return best;
}

}  // namespace cadre::tune
