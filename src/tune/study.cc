#include "cadre/tune/study.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "cadre/error.h"
#include "cadre/stored.h"
#include "control/differences.h"
#include "tune/held_options.h"
#include "tune/options/check_search_space.h"
#include "tune/options/options.h"
#include "tune/results/study_results.h"
#include "tune/searchers/variant_generator.h"
#include "tune/study_file.h"

namespace cadre::tune {
namespace {

// Returns the change without the members that are not set.
Dict line_of(const StudyChange& change) {
  Dict line;
  const Value all = to_stored(change);
  for (const auto& [key, value] : all.dict()) {
    if (!value.is_null()) line.emplace_back(key, value);
  }
  return line;
}

TunerOptions checked(Space space, TuneConfig config) {
  TunerOptions options{.param_space = std::move(space), .tune_config = std::move(config)};
  std::vector<std::string> notes;
  options = resolve({}, std::move(options), notes);
  check_search(options);
  return options;
}

}  // namespace

struct Study::State {
  explicit State(TunerOptions options)
      : space(std::move(options.param_space)),
        config(std::move(options.tune_config)),
        metric(config.metric.name, config.mode),
        variants(space, config),
        searcher(config.searcher.make(
            {.seed = config.seed, .space = space, .metric = metric, .num_samples = config.num_samples})) {}

  static std::unique_ptr<State> read(StudyFile file, const std::vector<Value>& lines);

  // ---- Changes: each is in the file before it takes effect

  Suggestion make(const Config& values) {
    const auto index = static_cast<TrialIndex>(trials.size());
    const Variant variant = variants(index, values);
    if (!variant.fault.empty()) throw InvalidArgument(variant.fault);
    change({.add = index, .config = variant.config.value()});
    return {index, variant.config};
  }
  void change(const StudyChange& change) {
    if (change.result) require_open(*change.result);
    if (change.end) require_open(*change.end);
    if (file) file->append(line_of(change));
    take(change);
  }
  void take(const StudyChange& change) {
    carry_out(change, trials);
    if (change.add) {
      open.push_back(*change.add);
      searcher->on_trial_add(*change.add, trials.back().config);
    }
    const std::optional<TrialIndex> told = change.end ? change.end : change.result;
    if (told && change.metrics) searcher->on_result(*told, trials[*told].results.back());
    if (!change.end) return;
    open.erase(std::ranges::lower_bound(open, *change.end));
    searcher->on_trial_end(*change.end, change.status.value(), trials[*change.end].last_result());
  }

  // ---- Checks

  void require_in_space(const Config& values, const std::string& whose) const {
    Faults faults;
    check_point(values.dict(), space, "value", faults);
    faults.throw_if_any(whose);
  }
  void require_open(TrialIndex trial) const {
    if (!std::ranges::binary_search(open, trial))
      throw NotFound(fmt::format("trial {} is not open: {}", trial,
                                 trial < trials.size() ? "it has ended" : "it was never suggested"));
  }

  Space space;
  TuneConfig config;
  Objective metric;
  VariantGenerator variants;
  std::unique_ptr<Searcher> searcher;
  std::optional<StudyFile> file = {};
  std::vector<StudyTrial> trials = {};
  std::vector<TrialIndex> open = {};
};

std::unique_ptr<Study::State> Study::State::read(StudyFile file, const std::vector<Value>& lines) {
  const std::string source = file.path().string();
  const std::filesystem::path path = file.path();
  StudyHeader header = reading(source, [&] { return read_study_header(lines.front(), path); });
  auto state = std::make_unique<State>(checked(std::move(header.param_space), std::move(header.tune_config)));
  reading(source, [&] {
    for (const Value& line : std::span(lines).subspan(1)) state->take(from_value<StudyChange>(line));
  });
  state->file = std::move(file);
  return state;
}

// ---- Making and opening

Study::Study(std::unique_ptr<State> state) : state_(std::move(state)) {}
Study::Study(Space space, TuneConfig config)
    : Study(std::make_unique<State>(checked(std::move(space), std::move(config)))) {}

Study::Study(const std::filesystem::path& directory, Space space, TuneConfig config) {
  const TunerOptions options = checked(std::move(space), std::move(config));
  const Value header = to_stored(StudyHeader{.param_space = options.param_space, .tune_config = options.tune_config});
  StudyFile file(directory);
  if (const std::vector<Value> lines = file.read(); !lines.empty()) {
    control::check_same(lines.front().dict(), header.dict(), "the study in " + directory.string());
    state_ = State::read(std::move(file), lines);
    return;
  }
  state_ = std::make_unique<State>(options);
  file.append(header.dict());
  state_->file = std::move(file);
}

Study Study::open(const std::filesystem::path& directory) {
  if (!exists(directory)) throw NotFound("there is no study in " + directory.string());
  StudyFile file(directory);
  const std::vector<Value> lines = file.read();
  if (lines.empty()) throw NotFound("the study in " + directory.string() + " was never begun");
  return Study(State::read(std::move(file), lines));
}

bool Study::exists(const std::filesystem::path& directory) { return StudyFile::exists(directory); }

Study::~Study() = default;
Study::Study(Study&&) noexcept = default;
Study& Study::operator=(Study&&) noexcept = default;

// ---- Asking and telling

std::optional<Suggestion> Study::suggest() {
  State& state = *state_;
  const auto index = static_cast<TrialIndex>(state.trials.size());
  if (state.variants.has_point(index)) return state.make({});
  const std::optional<Config> values = state.searcher->suggest(index);
  if (!values) return std::nullopt;
  state.require_in_space(*values,
                         fmt::format("trial {}, as the searcher {} suggests it,", index, state.config.searcher.name()));
  return state.make(*values);
}

Suggestion Study::add(const Config& config) {
  state_->require_in_space(config, "a trial with this config");
  if (state_->variants.has_point(num_trials()))
    throw InvalidArgument("points_to_evaluate are the first trials: call suggest() for them before add()");
  return state_->make(config);
}

void Study::report(TrialIndex trial, const Metrics& result) {
  state_->change({.result = trial, .metrics = result.value()});
}

void Study::observe(TrialIndex trial, const Metrics& result) {
  state_->change({.end = trial, .status = TrialStatus::terminated, .metrics = result.value()});
}

void Study::end(TrialIndex trial, TrialStatus status) {
  if (status != TrialStatus::error && status != TrialStatus::stopped && status != TrialStatus::terminated)
    throw InvalidArgument("a trial ends as terminated, stopped or error");
  state_->change({.end = trial, .status = status});
}

// ---- Looking

const Objective& Study::metric() const { return state_->metric; }
std::int64_t Study::num_trials() const { return std::ssize(state_->trials); }
const std::vector<TrialIndex>& Study::open_trials() const { return state_->open; }
const Config& Study::config(TrialIndex trial) const { return state_->trials.at(trial).config; }
Metrics Study::result(TrialIndex trial) const { return state_->trials.at(trial).last_result(); }

ResultGrid Study::results() const {
  const std::filesystem::path directory = state_->file ? state_->file->path().parent_path() : "";
  return study_results(directory, {.param_space = state_->space, .tune_config = state_->config}, state_->trials);
}

std::optional<TrialIndex> Study::best() const {
  std::optional<TrialIndex> best;
  double best_value = 0;
  for (TrialIndex trial = 0; trial < state_->trials.size(); ++trial) {
    const StudyTrial& one = state_->trials[trial];
    const std::optional<double> value = one.succeeded ? one.last_result().number(metric().name) : std::nullopt;
    if (!value || std::isnan(*value)) continue;
    const bool better = metric().mode == Mode::min ? *value < best_value : *value > best_value;
    if (best && !better) continue;
    best = trial;
    best_value = *value;
  }
  return best;
}

}  // namespace cadre::tune
