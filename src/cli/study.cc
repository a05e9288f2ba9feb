// cadre suggest and cadre observe: ask and tell, for scripts.
#include <fmt/format.h>

#include <string>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "cadre/error.h"
#include "cadre/stored.h"
#include "cadre/tune/study.h"
#include "cli/commands.h"
#include "cli/domain_text.h"
#include "cli/output.h"
#include "tune/held_options.h"

namespace cadre::cli {
namespace {

using tune::Study;
using tune::TrialIndex;
using tune::TrialStatus;

Value parse(const std::string& json, const std::string& what) {
  try {
    return base::parse_json(json, what);
  } catch (const StorageError& error) {
    throw InvalidArgument(error.what());
  }
}

// ---- suggest

struct Ask {
  std::string study = {};
  std::vector<std::string> parameters = {};
  std::filesystem::path space = {};
  std::string minimize = {};
  std::string maximize = {};
  std::string searcher = {};
  std::uint64_t seed = 0;
  std::int64_t count = 1;
};

tune::Space space_of(const Ask& ask) {
  tune::Space space;
  if (!ask.space.empty()) {
    const Value stored = parse(base::read_file(ask.space), ask.space.string());
    space = from_value<tune::Space>(stored);
  }
  for (const std::string& text : ask.parameters) space.push_back(parse_parameter(text));
  return space;
}

// Returns the searcher of a name, or of its options as JSON with the name as "type".
tune::AnySearcher searcher_of(const std::string& text) {
  if (text.empty()) return {};
  const Value stored = text.front() == '{' ? parse(text, "--searcher") : Value(Dict{{"type", text}});
  tune::AnySearcher searcher;
  read_stored(searcher, Stored(stored));
  return searcher;
}

Study open_or_begin(const Ask& ask) {
  const bool describes = !ask.parameters.empty() || !ask.space.empty();
  if (!describes && Study::exists(ask.study)) {
    if (!ask.minimize.empty() || !ask.maximize.empty() || !ask.searcher.empty() || ask.seed != 0)
      throw InvalidArgument("the study in " + ask.study +
                            " has its metric, searcher and seed already: leave --minimize, --maximize, --searcher and "
                            "--seed out");
    return Study::open(ask.study);
  }
  if (!describes)
    throw InvalidArgument("there is no study in " + ask.study +
                          " yet: begin it with its parameters, as in --param 'lr=loguniform(1e-5, 1)' --minimize loss");
  tune::TuneConfig config{.searcher = searcher_of(ask.searcher), .seed = ask.seed};
  if (!ask.minimize.empty()) config.metric = tune::minimize(ask.minimize);
  if (!ask.maximize.empty()) config.metric = tune::maximize(ask.maximize);
  return Study(ask.study, space_of(ask), config);
}

void suggest(const Ask& ask) {
  Study study = open_or_begin(ask);
  for (std::int64_t i = 0; i < ask.count; ++i) {
    const std::optional<tune::Suggestion> made = study.suggest();
    if (!made)
      throw NotFound(fmt::format("the searcher waits for the end of one of the {} open trials: cadre observe",
                                 study.open_trials().size()));
    write_json(Dict{{"trial", made->trial}, {"config", made->config.value()}});
  }
}

// ---- observe

struct Tell {
  std::string study = {};
  std::int64_t trial = 0;
  std::vector<std::string> metrics = {};
  std::string status = "done";
};

Metrics metrics_of(const std::vector<std::string>& texts) {
  Metrics metrics;
  for (const std::string& text : texts) {
    const std::size_t equals = text.find('=');
    if (equals == text.npos || equals == 0)
      throw InvalidArgument("\"" + text + "\" is no metric: write name=number, as loss=0.25");
    std::string value = text.substr(equals + 1);
    if (value == "nan" || value == "-nan") value = "NaN";
    if (value == "inf" || value == "-inf") value = value == "inf" ? "Infinity" : "-Infinity";
    metrics.set(text.substr(0, equals), parse(value, "the value of \"" + text.substr(0, equals) + "\""));
  }
  return metrics;
}

void observe(const Tell& tell) {
  const Metrics metrics = metrics_of(tell.metrics);
  if (tell.status == "running" && metrics.empty())
    throw InvalidArgument("--status running goes with a result, more of which will follow: write one, as loss=0.25");
  Study study = Study::open(tell.study);
  const auto trial = static_cast<TrialIndex>(tell.trial);
  const bool succeeded = tell.status == "done";
  if (succeeded && !study.metric().name.empty() && !metrics.number(study.metric().name))
    throw InvalidArgument("the result lacks the number " + study.metric().name + "=..., which the study is about");
  if (succeeded) return study.observe(trial, metrics);
  if (!metrics.empty()) study.report(trial, metrics);
  if (tell.status == "failed") study.end(trial, TrialStatus::error);
  if (tell.status == "stopped") study.end(trial, TrialStatus::stopped);
}

}  // namespace

void add_suggest(Command& program) {
  const auto ask = std::make_shared<Ask>();
  Command command = program.add_command("suggest", "Suggest a study's next config, as JSON");
  command.option("study", &ask->study, "Its directory; the first call makes it").required();
  command.option("-n,--count", &ask->count, "How many trials to suggest [1]").at_least(1).named("N");
  command.option("--param", &ask->parameters, "A new study's parameter; see below").named("PARAM");
  command.option("--space", &ask->space, "A new study's space: a JSON file").named("FILE");
  const Option minimize = command.option("--minimize", &ask->minimize, "A new study's metric").named("METRIC");
  command.option("--maximize", &ask->maximize, "A new study's metric").named("METRIC").excludes(minimize);
  command.option("--searcher", &ask->searcher, "A new study's searcher [RandomSearch]").named("SEARCHER");
  command.option("--seed", &ask->seed, "A new study's seed [0]").named("SEED");
  command.footer(
      "  cadre suggest tuning --param 'lr=loguniform(1e-5, 1)' --param epochs=10 \\\n"
      "    --param 'act=choice([\"relu\", \"tanh\"])' --minimize loss --searcher TPE\n"
      "  cadre observe tuning 0 loss=0.25\n"
      "  cadre suggest tuning\n"
      "SEARCHER is a name or its options: {\"type\": \"TPE\", \"n_startup_trials\": 5}.\n"
      "FILE has a search space as experiments store it: docs/formats.md.");
  command.on_call([ask] { suggest(*ask); });
}

void add_observe(Command& program) {
  const auto tell = std::make_shared<Tell>();
  Command command = program.add_command("observe", "Tell a study the result of a trial");
  command.option("study", &tell->study, "Its directory").required();
  command.option("trial", &tell->trial, "The trial's number").required().at_least(0).named("N");
  command.option("metrics", &tell->metrics, "Its result: loss=0.25 accuracy=0.9").named("METRIC=NUMBER");
  command.option("--status", &tell->status, "How it ended [done]; see below")
      .one_of({"done", "failed", "stopped", "running"})
      .named("STATUS");
  command.footer(
      "Status: done; failed or stopped, with or without a result; running: more results\n"
      "will follow.");
  command.on_call([tell] { observe(*tell); });
}

}  // namespace cadre::cli
