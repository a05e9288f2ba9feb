// Feeds a trace of results to the experiment's core and prints its decisions, a JSON line for each line of input.
// pbt_decisions_test.py compares them with a model written from the reference's text, and describes the lines. The
// setting "variant", if there is one, names another scheduler with the same options; lines then also have what the user
// is told.
#include <algorithm>
#include <iostream>
#include <iterator>
#include <string>

#include "base/json.h"
#include "tune/experiment.h"
#include "tune/loggers/pbt_log.h"
#include "tune/options/options.h"

namespace {

using namespace cadre;
using namespace cadre::tune;

// ---- The trainable, and the functions of the search space (search_space_oracle.py has the same)

void train(const Config&) {}

double ten_times_uniform(const Config&, Random& random) { return 10 * random.uniform(); }
std::int64_t number_of_keys(const Config& config) { return static_cast<std::int64_t>(config.size()); }
Config mark(Config config, Random& random) {
  config.set("mark", random.below(1000));
  return config;
}

SampleFrom to_function(const std::string& name) {
  return name == "number_of_keys" ? SampleFrom(fn<number_of_keys>) : fn<ten_times_uniform>;
}

// ---- Settings

// Converts ["uniform", 0, 1] and the like; search_space_oracle.py lists them.
Domain to_domain(const Value& value) {
  const List& words = value.items();
  auto kind = words[0].get<std::string>();
  if (kind == "choice") return choice(words[1].items());
  if (kind == "ordinal") return ordinal(words[1].items());
  const auto real = [&](std::size_t i) { return i < words.size() ? words[i].get<double>() : 0; };
  const auto integer = [&](std::size_t i) { return i < words.size() ? words[i].get<std::int64_t>() : 0; };
  if (kind.starts_with('q')) kind.erase(0, 1);
  if (kind == "uniform") return Uniform{real(1), real(2), real(3)};
  if (kind == "loguniform") return LogUniform{real(1), real(2), real(3)};
  if (kind == "randn") return Normal{real(1), real(2), real(3)};
  if (kind == "randint") return RandInt{integer(1), integer(2), integer(3)};
  if (kind == "lograndint") return LogRandInt{integer(1), integer(2), integer(3)};
  throw InvalidArgument("no domain is called " + kind);
}

SpaceEntry to_space_entry(const Value& value);

Space to_space(const Dict& entries) {
  Space space;
  for (const auto& [key, value] : entries) space.emplace_back(key, to_space_entry(value));
  return space;
}

Entries to_entries(const List& values) {
  Entries entries;
  for (const Value& value : values) entries.push_back(to_space_entry(value));
  return entries;
}

SpaceEntry to_space_entry(const Value& value) {
  const List& words = value.items();
  const auto kind = words[0].get<std::string>();
  if (kind == "constant") return words[1];
  if (kind == "space") return SpaceEntry(to_space(words[1].dict()));
  if (kind == "items") return SpaceEntry(to_entries(words[1].items()));
  if (kind == "grid") return grid_search(to_entries(words[1].items()));
  if (kind == "options") return choice(to_entries(words[1].items()));
  if (kind == "function") return to_function(words[1].get<std::string>());
  return to_domain(value);
}

Mutations to_mutations(const Dict& entries);

Mutation to_mutation(const Value& value) {
  const List& words = value.items();
  const auto kind = words[0].get<std::string>();
  if (kind == "list") return words[1].items();
  if (kind == "nested") return Mutation(to_mutations(words[1].dict()));
  if (kind == "function") return to_function(words[1].get<std::string>());
  return to_domain(value);
}

Mutations to_mutations(const Dict& entries) {
  Mutations mutations;
  for (const auto& [key, value] : entries) mutations.emplace_back(key, to_mutation(value));
  return mutations;
}

Mode to_mode(const std::string& name) { return name == "max" ? Mode::max : Mode::min; }

Bounds to_bounds(const std::string& name) {
  if (name == "clip") return Bounds::clip;
  return name == "reflect" ? Bounds::reflect : Bounds::unbounded;
}

PopulationBasedTraining to_pbt(const Config& pbt, const Dict& mutations) {
  const auto factors = pbt.get<std::vector<double>>("perturbation_factors");
  return {.time_attr = pbt.get<std::string>("time_attr"),
          .metric = pbt.get<std::string>("metric"),
          .mode = to_mode(pbt.get<std::string>("mode")),
          .perturbation_interval = pbt.get<double>("perturbation_interval"),
          .burn_in_period = pbt.get<double>("burn_in_period"),
          .hyperparam_mutations = to_mutations(mutations),
          .custom_explore_fn = pbt.get<bool>("custom") ? fn<mark> : ExploreFunction(),
          .bounds = to_bounds(pbt.get<std::string>("bounds")),
          .quantile_fraction = pbt.get<double>("quantile_fraction"),
          .resample_probability = pbt.get<double>("resample_probability"),
          .perturbation_factors = {factors.at(0), factors.at(1)},
          .require_attrs = pbt.get<bool>("require_attrs"),
          .synch = pbt.get<bool>("synch")};
}

PB2 to_pb2(const Config& pbt, const Dict& bounds) {
  const PopulationBasedTraining same = to_pbt(pbt, bounds);
  return {.time_attr = same.time_attr,
          .metric = same.metric,
          .mode = same.mode,
          .perturbation_interval = same.perturbation_interval,
          .burn_in_period = same.burn_in_period,
          .hyperparam_bounds = same.hyperparam_mutations,
          .quantile_fraction = same.quantile_fraction,
          .require_attrs = same.require_attrs,
          .synch = same.synch};
}

MultipleFrequenciesPBT to_multiple_frequencies(const Config& pbt, const Dict& mutations) {
  const PopulationBasedTraining same = to_pbt(pbt, mutations);
  return {.time_attr = same.time_attr,
          .metric = same.metric,
          .mode = same.mode,
          .perturbation_interval = same.perturbation_interval,
          .burn_in_period = same.burn_in_period,
          .interval_factors = pbt.get<std::vector<std::int64_t>>("interval_factors"),
          .hyperparam_mutations = same.hyperparam_mutations,
          .custom_explore_fn = same.custom_explore_fn,
          .bounds = same.bounds,
          .quantile_fraction = same.quantile_fraction,
          .resample_probability = same.resample_probability,
          .perturbation_factors = same.perturbation_factors,
          .require_attrs = same.require_attrs,
          .synch = same.synch};
}

AnyScheduler to_variant(const std::string& name, const Config& pbt, const Dict& mutations) {
  if (name == "PB2") return to_pb2(pbt, mutations);
  if (name == "MultipleFrequenciesPBT") return to_multiple_frequencies(pbt, mutations);
  throw InvalidArgument("no variant is called " + name);
}

PopulationBasedTrainingReplay to_replay(const Config& replay) {
  PolicySchedule schedule{.initial_config = Config(replay.get<Dict>("initial_config"))};
  for (const Value& item : replay.get<List>("changes")) {
    const Config change(item.dict());
    schedule.changes.push_back({change.get<std::int64_t>("change_at"), Config(change.get<Dict>("config"))});
  }
  return {.schedule = std::move(schedule)};
}

TunerOptions to_options(const Config& settings) {
  TunerOptions options;
  options.param_space = to_space(settings.get<Dict>("space"));
  options.tune_config.num_samples = settings.get<std::int64_t>("num_samples");
  options.tune_config.seed = static_cast<std::uint64_t>(settings.get<std::int64_t>("seed"));
  for (const Value& point : settings.get<List>("points"))
    options.tune_config.points_to_evaluate.emplace_back(point.dict());
  options.tune_config.constant_grid_search = settings.get<bool>("constant_grid_search");
  if (settings.contains("variant")) {
    options.tune_config.scheduler = to_variant(settings.get<std::string>("variant"), Config(settings.get<Dict>("pbt")),
                                               settings.get<Dict>("mutations"));
  } else if (settings.at("replay").is_null()) {
    options.tune_config.scheduler = to_pbt(Config(settings.get<Dict>("pbt")), settings.get<Dict>("mutations"));
  } else {
    options.tune_config.scheduler = to_replay(Config(settings.get<Dict>("replay")));
  }
  for (const auto& [metric, threshold] : settings.get<Dict>("stop"))
    options.run_config.stop.thresholds.emplace_back(metric, at_least(threshold.get<double>()));
  CheckpointConfig& checkpoints = options.run_config.checkpoint_config;
  if (!settings.at("num_to_keep").is_null()) checkpoints.num_to_keep = settings.get<std::int64_t>("num_to_keep");
  if (!settings.at("score_attribute").is_null())
    checkpoints.checkpoint_score_attribute =
        Objective(settings.get<std::string>("score_attribute"), to_mode(settings.get<std::string>("score_order")));
  return options;
}

TunerOptions to_resolved_options(const Config& settings) {
  std::vector<std::string> notes;
  TunerOptions options = resolve({}, to_options(settings), notes);
  check_options(fn<train>, options);
  return options;
}

// Converts "00003_lr=0.1/checkpoint_000007" to [3, 7]; null if there is none.
Value to_pair(const std::string& directory) {
  if (directory.empty()) return {};
  return list(std::stoi(directory.substr(0, 5)), std::stoi(directory.substr(directory.rfind('_') + 1)));
}

class Tool {
 public:
  explicit Tool(const Config& settings) : Tool(settings, to_resolved_options(settings)) {}

  void start() {
    step(ControllerStarted{{.cpus = slots_}});
    List trials;
    for (const Trial& trial : experiment_.trials()) trials.push_back(list(trial.tag, trial.sampled));
    extra_.emplace_back("trials", std::move(trials));
  }

  void feed(const Config& line) {
    const auto index = static_cast<TrialIndex>(line.get<std::int64_t>("trial"));
    const Trial& trial = experiment_.trials().at(index);
    if (!runs_user_code(trial.worker)) throw Error("trial " + trial.id + " does not run user code");
    if (line.contains("metrics")) {
      const bool checkpoint = line.get<bool>("checkpoint");
      step(ResultReported{index,
                          trial.attempt,
                          {.step = ++steps_.at(index),
                           .metrics = Metrics(line.get<Dict>("metrics")),
                           .checkpoint = checkpoint ? ".reporting" : ""}});
    } else if (line.contains("dies")) {
      step(WorkerEnded{index, trial.attempt, {engine::Exit::Kind::signal, line.get<int>("dies"), {}}});
    } else {
      const std::int64_t attempt = trial.attempt;
      if (line.contains("throws")) {
        step(FunctionThrew{index, attempt, line.get<std::string>("throws")});
      } else {
        step(FunctionReturned{index, attempt});
      }
      step(WorkerEnded{index, attempt, {engine::Exit::Kind::code, 0, {}}});
    }
  }

  std::string take_line() {
    Dict line{{"decisions", std::exchange(decisions_, {})},
              {"configs", std::exchange(configs_, {})},
              {"log", std::exchange(log_, {})}};
    if (List said = std::exchange(said_, {}); tells_) line.emplace_back("said", std::move(said));
    std::ranges::move(std::exchange(extra_, {}), std::back_inserter(line));
    return base::to_json(line);
  }

 private:
  void step(const Event& event) {
    Actions actions;
    experiment_.handle(event, actions);
    for (const Action& action : actions) std::visit([this](const auto& content) { show(content); }, action);
    for (const Action& action : actions) {
      const auto* answer = std::get_if<AnswerReport>(&action);
      if (answer == nullptr || answer->verdict != channel::Verdict::stop) continue;
      step(FunctionReturned{answer->trial, answer->attempt});
      step(WorkerEnded{answer->trial, answer->attempt, {engine::Exit::Kind::code, 0, {}}});
    }
  }

  void show(const RecordDecision& decision) {
    if (decision.kind == DecisionKind::make) return;  // the config is shown with the launch
    const Config data(decision.data);
    Dict shown{{"kind", std::string(to_string(decision.kind))}, {"trial", decision.trial}};
    if (decision.kind == DecisionKind::launch) {
      shown.emplace_back("attempt", data.at("attempt"));
      shown.emplace_back("checkpoint", to_pair(data.get<std::string>("checkpoint")));
    } else if (decision.kind == DecisionKind::exploit) {
      shown.emplace_back("donor", data.at("donor"));
      shown.emplace_back("checkpoint", to_pair(data.get<std::string>("checkpoint")));
      shown.emplace_back("config", data.at("config"));
      shown.emplace_back("operations", data.at("operations"));
    }
    decisions_.push_back(std::move(shown));
  }
  void show(const DeleteCheckpoint& checkpoint) {
    decisions_.push_back(Dict{{"kind", "delete"}, {"checkpoint", to_pair(checkpoint.directory)}});
  }
  void show(const Launch& launch) {
    steps_[launch.trial] = launch.step;
    configs_.emplace_back(std::to_string(launch.trial), launch.config.dict());
  }
  void show(const LogExploit& exploit) {
    if (!logs_exploits_) return;
    log_.push_back(list(experiment_.trials().at(exploit.target).tag, experiment_.trials().at(exploit.donor).tag,
                        exploit.target_iteration, exploit.donor_iteration, exploit.donor_config.dict(),
                        exploit.new_config.dict()));
  }
  void show(const Say& say) { said_.push_back(say.text); }
  template <class Other>
  void show(const Other&) {}

  Tool(const Config& settings, TunerOptions options)
      : slots_(settings.get<double>("slots")),
        tells_(settings.contains("variant")),
        logs_exploits_(options.tune_config.scheduler.held().traits().logs_exploits),
        experiment_(Trainable("oracle"), std::move(options)) {}

  double slots_;
  bool tells_;
  bool logs_exploits_;
  Experiment experiment_;
  std::map<TrialIndex, std::int64_t> steps_;  // reported by the trial's present worker
  List decisions_;
  Dict configs_;
  List log_;
  List said_;
  Dict extra_;  // further keys of the first line
};

int answer_lines() {
  std::string line;
  std::getline(std::cin, line);
  Tool tool(Config(base::parse_json(line, "the settings").dict()));
  tool.start();
  std::cout << tool.take_line() << '\n';
  while (std::getline(std::cin, line)) {
    tool.feed(Config(base::parse_json(line, "an event").dict()));
    std::cout << tool.take_line() << '\n';
  }
  return 0;
}

}  // namespace

int main() {
  try {
    return answer_lines();
  } catch (const std::exception& error) {
    std::cerr << "pbt_decisions_tool: " << error.what() << '\n';
    return 1;
  }
}
