#include "train/read_timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "base/json.h"
#include "base/overload.h"
#include "store/experiment_reader.h"
#include "train/journal.h"
#include "train/options.h"
#include "train/run.h"

namespace cadre::train {
namespace fs = std::filesystem;
namespace {

using Kind = TimelineSpan::Kind;

// Replays a run's events and records the begin and end of groups, uploads and validations. Times are seconds since
// 1970.
class Historian {
 public:
  explicit Historian(const TrainerOptions& options) : run_(options) {}

  void add(const Event& event, double time) {
    if (first_ > time) first_ = time;
    const double before = std::exchange(last_, std::max(last_, time));
    const bool had_group = group_.has_value();
    Actions actions;
    run_.handle(event, actions);
    std::visit(
        base::Overload{[&](const ControllerStarted&) { end_all(before); },
                       [&](const GroupReported& report) {
                         reports_.push_back(time);
                         if (!report.checkpoint.parts.empty()) uploads_[report.step] = time;
                       },
                       [&](const WorkerEnded&) {
                         if (group_) group_->end = time;
                       },
                       [&](const ValidatorReturned& returned) { end_validation(returned.checkpoint, time, false); },
                       [&](const ValidatorThrew& threw) { end_validation(threw.checkpoint, time, true); },
                       [&](const ValidatorEnded& ended) { end_validation(ended.checkpoint, time, true); },
                       [](const auto&) {}},
        event);
    for (const Action& action : actions) add(action, time);
    if (had_group && run_.has_trained()) end_group(time, false);
  }

  Timeline timeline(std::string title) {
    end_all(last_);
    Timeline timeline{.title = std::move(title), .duration = last_ - first_};
    for (const double report : reports_) timeline.reports.push_back(report - first_);
    for (auto& [name, spans] :
         {std::pair{"training", &groups_}, {"uploads", &on_their_way_}, {"validations", &validated_}}) {
      for (TimelineSpan& span : *spans) {
        span.begin -= first_;
        span.end -= first_;
      }
      timeline.lanes.push_back({name, std::move(*spans)});
    }
    return timeline;
  }

 private:
  void add(const Action& action, double time) {
    std::visit(base::Overload{[&](const LaunchGroup& group) {
                                end_group(time, false);
                                group_ =
                                    TimelineSpan{.begin = time,
                                                 .end = time,
                                                 .label = fmt::format("attempt {}: {} {}", group.attempt, group.workers,
                                                                      group.workers == 1 ? "worker" : "workers")};
                              },
                              [&](const TellOfFailure&) { end_group(time, true); },
                              [&](const CommitCheckpoint& commit) {
                                const auto reported = uploads_.find(commit.step);
                                if (reported == uploads_.end()) return;
                                on_their_way_.push_back({Kind::upload, reported->second, time, commit.directory});
                                uploads_.erase(reported);
                              },
                              [&](const StartValidator& validator) {
                                validating_[validator.id] = {Kind::validation, time, time, validator.checkpoint};
                              },
                              [](const auto&) {}},
               action);
  }

  void end_group(double time, bool failed) {
    if (!group_) return;
    group_->end = std::max(group_->end, time);
    if (failed) group_->kind = Kind::failed;
    groups_.push_back(*std::exchange(group_, std::nullopt));
  }
  void end_validation(checkpoint::CheckpointId id, double time, bool failed) {
    const auto found = validating_.find(id);
    if (found == validating_.end()) return;
    found->second.end = time;
    if (failed) found->second.kind = Kind::failed;
    validated_.push_back(std::move(found->second));
    validating_.erase(found);
  }
  // Ends the spans that were open when the controller ended, or that are still open.
  void end_all(double time) {
    end_group(time, false);
    while (!validating_.empty()) end_validation(validating_.begin()->first, time, false);
  }

  Run run_;
  double first_ = std::numeric_limits<double>::infinity();
  double last_ = 0;
  std::vector<double> reports_ = {};
  std::map<std::int64_t, double> uploads_ = {};  // by step: time of the report
  std::optional<TimelineSpan> group_ = {};
  std::map<checkpoint::CheckpointId, TimelineSpan> validating_ = {};
  std::vector<TimelineSpan> groups_ = {};
  std::vector<TimelineSpan> on_their_way_ = {};
  std::vector<TimelineSpan> validated_ = {};
};

}  // namespace

Timeline read_timeline(const fs::path& directory) {
  const store::ExperimentReader reader(directory, store::ExperimentReader::Check::rows);
  const std::string source = "the options in " + (directory / store::kStoreFileName).string();
  const Description description = parse_description(base::parse_json(reader.info().options, source), source);
  Historian historian(description.options);
  reader.visit({.result = [&](const store::ResultRow& row) { historian.add(to_event(row), row.time); },
                .event = [&](const store::EventRow& row) { historian.add(to_event(row), row.time); },
                .decision = [](const store::DecisionRow&) {}});
  return historian.timeline(reader.info().name);
}

}  // namespace cadre::train
