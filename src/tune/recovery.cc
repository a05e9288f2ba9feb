#include "tune/recovery.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/directory.h"
#include "base/json.h"
#include "base/machine.h"
#include "cadre/error.h"
#include "checkpoint/checkpoint_files.h"
#include "control/replay.h"
#include "tune/journal.h"

namespace cadre::tune {
namespace fs = std::filesystem;
namespace {

constexpr std::int64_t kEventsPerFlush = 256;

// ---- Events

// Returns true if the event's trial does not exist, which is possible only after a divergence.
bool concerns_nobody(const Event& event, std::size_t trials) {
  return std::visit(
      [&](const auto& content) {
        if constexpr (requires { content.trial; }) return content.trial >= trials;
        return false;
      },
      event);
}

// Feeds recorded events to an experiment.
class EventFeeder {
 public:
  EventFeeder(const Snapshots::Subject& subject, Snapshots& snapshots, bool allow_divergence)
      : subject_(subject),
        snapshots_(snapshots),
        check_(allow_divergence, ", or let RestoreOptions allow the divergence") {}

  // Feeds the store's rows after `event`, in order; returns the last one's sequence number.
  std::int64_t run(const store::ExperimentStore& store, std::int64_t event);

  const std::optional<control::Divergence>& divergence() const { return check_.divergence(); }
  // Returns the directories, relative to the experiment's, that were to be deleted.
  const std::vector<std::string>& deletions() const { return deletions_; }

 private:
  const Actions& take(const Event& event, double time);
  void take(const Action& action, double time);

  const Snapshots::Subject& subject_;
  Snapshots& snapshots_;
  control::DecisionCheck check_;
  Actions actions_;                          // of the last event
  std::optional<RecordedAnswers> recorded_;  // after it; empty: decisions have diverged
  std::int64_t events_ = 0;
  std::vector<std::string> deletions_;
};

std::int64_t EventFeeder::run(const store::ExperimentStore& store, std::int64_t event) {
  const std::int64_t last = control::replay<Experiment>(
      store, event, check_,
      [this](const auto& row, const std::vector<store::DecisionRow>& decisions) -> const Actions& {
        recorded_ = check_.divergence() ? std::nullopt : std::optional(answers_of(decisions));
        return take(to_event(row), row.time);
      });
  subject_.files.flush();
  return last;
}

const Actions& EventFeeder::take(const Event& event, double time) {
  actions_.clear();
  subject_.running_time.handle(event, time);
  if (concerns_nobody(event, subject_.experiment.trials().size())) return actions_;
  subject_.experiment.handle(event, actions_, recorded_ ? &*recorded_ : nullptr);
  snapshots_.add(event, actions_);
  for (const Action& action : actions_) take(action, time);
  if (++events_ % kEventsPerFlush == 0) subject_.files.flush();
  return actions_;
}

void EventFeeder::take(const Action& action, double time) {
  subject_.files.log(action, time);
  if (const auto* checkpoint = std::get_if<DeleteCheckpoint>(&action)) {
    deletions_.push_back(checkpoint->directory);
  } else if (const auto* discard = std::get_if<DiscardDirectory>(&action)) {
    deletions_.push_back(discard->directory);
  }
}

// ---- The whole recovery

class Recovery {
 public:
  Recovery(store::ExperimentStore& store, Snapshots& snapshots, const Snapshots::Subject& subject,
           const control::WorkPlace& work_place)
      : store_(store), snapshots_(snapshots), subject_(subject), work_place_(work_place) {}

  Recovered run(const RecoveryOptions& options);

 private:
  Snapshots::Place load_snapshot();
  void accept(const control::Divergence& divergence);
  void remove_leftovers(const std::vector<std::string>& deletions);
  void check_checkpoints(bool of_extended);

  store::ExperimentStore& store_;
  Snapshots& snapshots_;
  const Snapshots::Subject& subject_;
  const control::WorkPlace& work_place_;
  const fs::path& directory_ = work_place_.directory();
  // Trials whose directories may contain leftovers.
  std::set<TrialIndex> untidy_;
  Recovered recovered_;
};

Recovered Recovery::run(const RecoveryOptions& options) {
  const Snapshots::Place place = load_snapshot();
  untidy_ = subject_.experiment.live_trials();
  EventFeeder feeder(subject_, snapshots_, options.allow_divergence);
  try {
    control::replaying("the store", [&] { recovered_.last_event = feeder.run(store_, place.event); });
  } catch (const StorageError& error) {
    throw StorageError(fmt::format("the experiment in {} cannot be continued: {}", directory_.string(), error.what()));
  }
  if (!store_.recovered().empty()) recovered_.notes.push_back("Warning: " + store_.recovered());
  if (feeder.divergence()) accept(*feeder.divergence());
  const std::set<TrialIndex>& changed = snapshots_.changed_trials();
  untidy_.insert(changed.begin(), changed.end());
  if (store_.after_reboot())  // the lost end of the log may have concerned any trial
    for (const Trial& trial : subject_.experiment.trials()) untidy_.insert(trial.index);
  remove_leftovers(place.deletions);
  remove_leftovers(feeder.deletions());
  control::replaying("the store in " + directory_.string(), [&] { check_checkpoints(options.extends); });
  return std::move(recovered_);
}

Snapshots::Place Recovery::load_snapshot() {
  try {
    if (auto place = control::replaying("it", [&] { return snapshots_.load(subject_, store_.after_reboot()); }))
      return *std::move(place);
  } catch (const Error& error) {
    recovered_.notes.push_back(
        fmt::format("The last snapshot cannot be used ({}): all events are read, and result files are written anew.",
                    error.what()));
    snapshots_.forget();
    subject_.experiment = subject_.experiment.anew();
    subject_.running_time = {};
  }
  subject_.files.begin_anew();
  return {};
}

// Rewrites the store to match the experiment's present decisions.
void Recovery::accept(const control::Divergence& divergence) {
  recovered_.diverged = true;
  recovered_.notes.push_back(
      fmt::format("Warning: {}; what it decides now counts from there on", divergence.description));
  store_.remove_decisions_from(divergence.event);
  for (const store::DecisionRow& decision : divergence.decisions) store_.add(decision);
  const checkpoint::CheckpointRegistry& registry = subject_.experiment.checkpoint_registry();
  std::set<checkpoint::CheckpointId> as_before;
  for (const store::CheckpointRow& row : store_.checkpoints()) {
    if (registry.contains(row.id) && registry.get(row.id).directory == row.directory) {
      as_before.insert(row.id);
    } else {
      store_.remove_checkpoint(row.id);
    }
  }
  for (const checkpoint::CheckpointId id : registry.all()) {
    const checkpoint::CheckpointRecord& record = registry.get(id);
    if (!as_before.contains(id)) store_.add(store::CheckpointRow{id, record.owner, record.step, record.directory});
  }
  for (const Trial& trial : subject_.experiment.trials()) store_.put(to_row(state_of(trial)));
  store_.commit();
}

// Removes directories that a worker or the controller was about to report, commit or delete.
void Recovery::remove_leftovers(const std::vector<std::string>& deletions) {
  std::set<std::string> listed;
  const checkpoint::CheckpointRegistry& registry = subject_.experiment.checkpoint_registry();
  for (const checkpoint::CheckpointId id : registry.all()) listed.insert(registry.get(id).directory);
  const auto remove = [&](const std::string& directory) {
    if (!listed.contains(directory)) recovered_.set_aside(work_place_, {directory, "the experiment's store"});
  };
  std::ranges::for_each(deletions, remove);
  for (const TrialIndex index : std::exchange(untidy_, {})) {
    const std::string& trial = subject_.experiment.trials().at(index).directory;
    for (const std::string& name : work_place_.reported_where_published(trial)) remove(trial + "/" + name);
    if (!fs::exists(directory_ / trial)) continue;
    for (const std::string& name : base::list_directory(directory_ / trial)) {
      if (checkpoint::is_name_of_checkpoint(name)) remove(trial + "/" + name);
    }
  }
}

// Checks the contents of checkpoints from which a trial may continue, and the sizes of other checkpoints whose trial
// has not ended. Of all others, which may be many, only the directory must exist.
void Recovery::check_checkpoints(bool of_extended) {
  const Experiment& experiment = subject_.experiment;
  const checkpoint::CheckpointRegistry& registry = experiment.checkpoint_registry();
  const std::string boot = base::boot_id();
  std::map<checkpoint::CheckpointId, store::CheckpointRow> rows;
  for (store::CheckpointRow& row : store_.checkpoints()) rows[row.id] = std::move(row);
  std::set<checkpoint::CheckpointId> lost;
  const auto check = [&](checkpoint::CheckpointId id, checkpoint::CheckDepth depth) {
    if (lost.contains(id)) return;
    const std::string fault = checkpoint::fault_of_checkpoint(directory_, rows.at(id), boot, depth);
    if (fault.empty()) return;
    recovered_.notes.push_back(fmt::format("Warning: the checkpoint {} is given up: {}", rows.at(id).directory, fault));
    lost.insert(id);
  };
  for (const checkpoint::CheckpointId id : registry.all())
    check(id, experiment.trials().at(registry.get(id).owner).ended() ? checkpoint::CheckDepth::directory
                                                                     : checkpoint::CheckDepth::sizes);
  std::vector<checkpoint::CheckpointId> needed = experiment.needed_checkpoints(of_extended);
  while (!needed.empty()) {
    const checkpoint::CheckpointId id = needed.back();
    needed.pop_back();
    check(id, checkpoint::CheckDepth::contents);
    if (const auto older = registry.ancestor(id); older && lost.contains(id)) needed.push_back(*older);
  }
  recovered_.lost_checkpoints.assign(lost.begin(), lost.end());
  for (const auto& [id, row] : rows) {
    if (!lost.contains(id)) recovered_.add_checkpoint(row, registry);
  }
}

}  // namespace

Recovered recover(store::ExperimentStore& store, Snapshots& snapshots, const Snapshots::Subject& subject,
                  const control::WorkPlace& work_place, const RecoveryOptions& options) {
  return Recovery(store, snapshots, subject, work_place).run(options);
}

}  // namespace cadre::tune
