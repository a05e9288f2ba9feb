#include "tune/results/study_results.h"

#include <algorithm>
#include <memory>
#include <span>
#include <utility>

#include "cadre/error.h"
#include "cadre/stored.h"
#include "tune/experiment_directory.h"
#include "tune/results/result_rows.h"
#include "tune/searchers/variant_generator.h"

namespace cadre::tune {

ResultGrid study_results(const std::filesystem::path& directory, const StudyHeader& header,
                         const std::vector<StudyTrial>& trials) {
  const VariantGenerator variants(header.param_space, header.tune_config);
  std::vector<Result> results;
  bool is_open = false;
  for (const StudyTrial& trial : trials) {
    const auto index = static_cast<TrialIndex>(results.size());
    is_open = is_open || !trial.end;
    Result result{.trial_id = trial_id(index),
                  .status = trial.end.value_or(TrialStatus::running),
                  .config = trial.config,
                  .metrics = trial.last_result(),
                  .path = directory,
                  .drawn_config = trial.config,
                  .sampled = variants.sampled(index, trial.config),
                  .rows = std::make_shared<const detail::ResultRows>(detail::ResultRows{.results = trial.results})};
    if (trial.end == TrialStatus::error) result.error = "it was told to have failed";
    results.push_back(std::move(result));
  }
  ExperimentSummary summary{
      .name = directory.filename().string(),
      .state = is_open ? ExperimentState::running : ExperimentState::finished,
      .options = {{"param_space", to_stored(header.param_space)}, {"tune_config", to_stored(header.tune_config)}},
      .metric = header.tune_config.metric.name,
      .mode = header.tune_config.mode};
  return {directory, std::move(results), std::move(summary)};
}

ResultGrid read_study(const std::filesystem::path& directory) {
  const std::filesystem::path plain = std::filesystem::canonical(directory);
  const std::vector<Value> lines = StudyFile::read(plain);
  if (lines.empty()) throw NotFound("the study in " + plain.string() + " was never begun");
  return reading("the study in " + plain.string(), [&] {
    const StudyHeader header = read_study_header(lines.front(), plain);
    std::vector<StudyTrial> trials;
    for (const Value& line : std::span(lines).subspan(1)) carry_out(from_value<StudyChange>(line), trials);
    return study_results(plain, header, trials);
  });
}

}  // namespace cadre::tune
