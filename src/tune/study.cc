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
#include "tune/searchers/variant_generator.h"
#include "tune/study_file.h"

namespace cadre::tune {
namespace {

constexpr std::int64_t kFormat = 1;

// The first line of a study's file.
struct Header {
  std::int64_t study = kFormat;
  Space param_space = {};
  TuneConfig tune_config = {};
};

// A further line: a trial that was made, or a result or the end of one.
struct Change {
  std::optional<TrialIndex> add = {};
  std::optional<Value> config = {};
  std::optional<TrialIndex> result = {};
  std::optional<TrialIndex> end = {};
  std::optional<TrialStatus> status = {};
  std::optional<Value> metrics = {};
};

// Returns the change without the members that are not set.
Dict line_of(const Change& change) {
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
  struct Member {
    Config config = {};
    Metrics result = {};
    bool succeeded = false;
  };

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
    const auto index = static_cast<TrialIndex>(members.size());
    const Variant variant = variants(index, values);
    if (!variant.fault.empty()) throw InvalidArgument(variant.fault);
    change({.add = index, .config = variant.config.value()});
    return {index, variant.config};
  }
  void change(const Change& change) {
    if (change.result) require_open(*change.result);
    if (change.end) require_open(*change.end);
    if (file) file->append(line_of(change));
    take(change);
  }
  void take(const Change& change) {
    const Metrics metrics = change.metrics ? Metrics(*change.metrics) : Metrics();
    if (change.add) add(Config(change.config.value()));
    if (change.result) report(*change.result, metrics);
    if (!change.end) return;
    if (change.metrics) report(*change.end, metrics);
    members[*change.end].succeeded = change.status == TrialStatus::terminated && change.metrics;
    open.erase(std::ranges::lower_bound(open, *change.end));
    searcher->on_trial_end(*change.end, change.status.value(), members[*change.end].result);
  }
  void add(Config made) {
    const auto index = static_cast<TrialIndex>(members.size());
    members.push_back({.config = std::move(made)});
    open.push_back(index);
    searcher->on_trial_add(index, members.back().config);
  }
  void report(TrialIndex trial, const Metrics& metrics) {
    require_open(trial);
    members[trial].result = metrics;
    searcher->on_result(trial, metrics);
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
                                 trial < members.size() ? "it has ended" : "it was never suggested"));
  }

  Space space;
  TuneConfig config;
  Objective metric;
  VariantGenerator variants;
  std::unique_ptr<Searcher> searcher;
  std::optional<StudyFile> file = {};
  std::vector<Member> members = {};
  std::vector<TrialIndex> open = {};
};

std::unique_ptr<Study::State> Study::State::read(StudyFile file, const std::vector<Value>& lines) {
  const std::string source = file.path().string();
  return reading(source, [&] {
    const Value* format = find_entry(Stored(lines.front()).dict(), "study");
    if (format == nullptr || *format != Value(kFormat))
      throw StorageError(source + " is no study, or was written by a newer version of Cadre");
    auto header = from_value<Header>(lines.front());
    auto state = std::make_unique<State>(checked(std::move(header.param_space), std::move(header.tune_config)));
    for (const Value& line : std::span(lines).subspan(1)) state->take(from_value<Change>(line));
    state->file = std::move(file);
    return state;
  });
}

// ---- Making and opening

Study::Study(std::unique_ptr<State> state) : state_(std::move(state)) {}
Study::Study(Space space, TuneConfig config)
    : Study(std::make_unique<State>(checked(std::move(space), std::move(config)))) {}

Study::Study(const std::filesystem::path& directory, Space space, TuneConfig config) {
  const TunerOptions options = checked(std::move(space), std::move(config));
  const Value header = to_stored(Header{.param_space = options.param_space, .tune_config = options.tune_config});
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
std::int64_t Study::num_trials() const { return std::ssize(state_->members); }
const std::vector<TrialIndex>& Study::open_trials() const { return state_->open; }
const Config& Study::config(TrialIndex trial) const { return state_->members.at(trial).config; }
const Metrics& Study::result(TrialIndex trial) const { return state_->members.at(trial).result; }

std::optional<TrialIndex> Study::best() const {
  std::optional<TrialIndex> best;
  double best_value = 0;
  for (TrialIndex trial = 0; trial < state_->members.size(); ++trial) {
    const State::Member& member = state_->members[trial];
    const std::optional<double> value = member.succeeded ? member.result.number(metric().name) : std::nullopt;
    if (!value || std::isnan(*value)) continue;
    const bool better = metric().mode == Mode::min ? *value < best_value : *value > best_value;
    if (best && !better) continue;
    best = trial;
    best_value = *value;
  }
  return best;
}

}  // namespace cadre::tune
