#include "tune/result_reader.h"

#include <algorithm>
#include <map>
#include <span>

#include "base/json.h"
#include "cadre/error.h"
#include "run/checkpoint_files.h"
#include "run/checkpoint_registry.h"
#include "tune/trial.h"
#include "tune/trial_histories.h"

namespace cadre::tune {
namespace fs = std::filesystem;
namespace {

using store::ExperimentReader;

TrialStatus status_of(const std::string& name, bool runs) {
  for (const TrialStatus status : {TrialStatus::terminated, TrialStatus::error}) {
    if (name == to_string(status)) return status;
  }
  if (!runs) return TrialStatus::pending;
  return name == to_string(TrialStatus::running)  ? TrialStatus::running
         : name == to_string(TrialStatus::paused) ? TrialStatus::paused
                                                  : TrialStatus::pending;
}

// Whether an entry of a stored search space differs between trials.
bool varies(const Value& entry) {
  const Config fields(entry.dict());
  const auto type = fields.get<std::string>("type");
  if (type == "list") return std::ranges::any_of(fields.at("items").items(), varies);
  return type != "constant" && type != "space";
}

// The values of a config at or below what varies in the space, by path.
void collect_sampled(const Dict& space, const Dict& config, const std::string& prefix, Dict& sampled) {
  const auto collect_all = [&](auto& self, const std::string& path, const Value& value) -> void {
    if (!value.is_dict() || value.dict().empty()) return sampled.emplace_back(path, value), void();
    for (const auto& [key, inner] : value.dict()) self(self, path + "/" + key, inner);
  };
  const Config values(config);
  for (const auto& [key, entry] : space) {
    const auto value = std::ranges::find(config, key, &Dict::value_type::first);
    if (value == config.end()) continue;
    const Config fields(entry.dict());
    if (fields.get<std::string>("type") == "space" && value->second.is_dict()) {
      collect_sampled(fields.at("entries").dict(), value->second.dict(), prefix + key + "/", sampled);
    } else if (varies(entry)) {
      collect_all(collect_all, prefix + key, value->second);
    }
  }
}

CheckpointConfig checkpoint_config_of(const Config& options) {
  CheckpointConfig config;
  const auto field = [&](const char* name) {
    return options.find(std::string("run_config/checkpoint_config/") + name);
  };
  if (const Value* number = field("num_to_keep"); number != nullptr && !number->is_null())
    config.num_to_keep = number->get<std::int64_t>();
  if (const Value* name = field("checkpoint_score_attribute"); name != nullptr && !name->is_null())
    config.checkpoint_score_attribute = name->get<std::string>();
  if (const Value* order = field("checkpoint_score_order"); order != nullptr && *order == Value("min"))
    config.checkpoint_score_order = Mode::min;
  return config;
}

ExperimentSummary summary_of(const ExperimentReader& reader, const fs::path& directory) {
  const store::ExperimentInfo info = reader.info();
  ExperimentSummary summary{
      .name = directory.filename(),
      .trainable = info.trainable,
      .state = reader.finished()     ? ExperimentState::finished
               : reader.controller() ? ExperimentState::running
                                     : ExperimentState::interrupted,
      .controller = reader.controller().value_or(""),
      .options = Config(base::parse_json(info.options, "the options in " + directory.string()).dict())};
  if (const Value* metric = summary.options.find("tune_config/metric"); metric != nullptr && metric->is_string())
    summary.metric = metric->get<std::string>();
  if (const Value* mode = summary.options.find("tune_config/mode"); mode != nullptr && *mode == Value("min"))
    summary.mode = Mode::min;
  return summary;
}

class ResultMaker {
 public:
  ResultMaker(ExperimentReader& reader, const fs::path& directory, const TrialHistories& histories,
              const ExperimentSummary& summary)
      : reader_(reader),
        directory_(directory),
        histories_(histories),
        checkpoint_config_(checkpoint_config_of(summary.options)),
        runs_(summary.state == ExperimentState::running) {
    if (const Value* space = summary.options.find("param_space")) space_ = space->dict();
  }

  Result make(std::size_t index, const store::TrialRow& row, const std::vector<std::string>& ids) const {
    const TrialHistory& history = histories_.trials()[index];
    Result result{.trial_id = row.trial_id,
                  .status = status_of(row.status, runs_),
                  .config = Config(base::parse_json(row.config, "the config of trial " + row.trial_id).dict()),
                  .metrics = metrics(history.last_result),
                  .path = directory_ / row.directory,
                  .drawn_config = history.drawn_config,
                  .exploits = history.exploits,
                  .attempts = row.attempt,
                  .failures = history.failures,
                  .results = std::make_shared<const std::vector<std::int64_t>>(history.results)};
    if (result.status == TrialStatus::error) result.error = row.error;
    collect_sampled(space_, result.drawn_config.dict(), "", result.sampled);
    for (std::size_t i = 0; i < result.exploits.size(); ++i) {
      ExploitRecord& exploit = result.exploits[i];
      exploit.training_iteration = iteration(history.before[i]);
      exploit.donor_iteration = iteration(exploit.donor_result);
      exploit.donor = ids[history.donors[i]];
      exploit.checkpoint = directory_ / exploit.checkpoint;
    }
    return result;
  }

  // `existing` are the trial's own.
  void add_checkpoints(Result& result, std::size_t index, std::span<const CheckpointName> existing,
                       const std::vector<store::TrialRow>& rows) const {
    const auto checkpoint = [&](const CheckpointName& name) {
      return Checkpoint::from_directory(directory_ / rows[name.trial].directory /
                                        run::checkpoint_name(static_cast<std::int64_t>(name.number)));
    };
    const TrialHistory& history = histories_.trials()[index];
    if (history.latest_checkpoint) result.checkpoint = checkpoint(*history.latest_checkpoint);
    // Those that exist are the ones that retention keeps, and some that somebody may continue from.
    run::CheckpointRegistry registry(checkpoint_config_);
    std::map<run::CheckpointId, CheckpointName> names;
    for (const CheckpointName& name : existing) {
      if (name.number >= history.checkpoints.size()) continue;  // reported by a worker of a replaced decision
      names.emplace(registry.add(0, 0, "", metrics(history.checkpoints[name.number].result)), name);
    }
    if (names.empty()) return;
    for (const run::CheckpointId id : registry.kept(0))
      result.best_checkpoints.emplace_back(checkpoint(names.at(id)), registry.get(id).metrics);
  }

 private:
  Metrics metrics(std::int64_t result) const {
    if (result == 0) return {};
    return Metrics(base::parse_json(reader_.metrics(result), "a result in " + directory_.string()).dict());
  }
  std::int64_t iteration(std::int64_t result) const { return training_iteration(metrics(result)); }

  ExperimentReader& reader_;
  const fs::path& directory_;
  const TrialHistories& histories_;
  CheckpointConfig checkpoint_config_;
  bool runs_;
  Dict space_ = {};
};

}  // namespace

ResultGrid ResultGrid::from_directory(const fs::path& directory) {
  std::error_code unreadable;
  if (!fs::exists(directory / store::kStoreFileName, unreadable))
    throw NotFound("there is no experiment in " + fs::absolute(directory).lexically_normal().string() +
                   ": it has no file " + store::kStoreFileName);
  return read_results(directory, ExperimentReader::Check::whole);
}

ResultGrid read_results(const fs::path& directory, ExperimentReader::Check check) {
  const fs::path plain = fs::canonical(directory);  // so that the experiment keeps its name
  ExperimentReader reader(plain, check);
  ExperimentSummary summary = summary_of(reader, plain);
  const std::vector<store::TrialRow> rows = reader.trials();
  TrialHistories histories(rows, reader.checkpoints());
  reader.visit({.result = [&](const store::ResultRow& row) { histories.add(row); },
                .event = [&](const store::EventRow& row) { histories.add(row); },
                .decision = [&](const store::DecisionRow& row) { histories.add(row); }});
  summary.started = histories.first_time();
  summary.last_event = histories.last_time();
  summary.running_seconds = histories.running_time().seconds_at(histories.last_time());
  summary.sessions = histories.running_time().sessions();

  const ResultMaker maker(reader, plain, histories, summary);
  std::vector<std::string> ids;
  std::ranges::transform(rows, std::back_inserter(ids), &store::TrialRow::trial_id);
  const std::vector<CheckpointName>& existing = histories.existing_checkpoints();
  std::vector<Result> results;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    results.push_back(maker.make(i, rows[i], ids));
    maker.add_checkpoints(results.back(), i, std::ranges::equal_range(existing, i, {}, &CheckpointName::trial), rows);
  }
  return {plain, std::move(results), std::move(summary)};
}

}  // namespace cadre::tune
