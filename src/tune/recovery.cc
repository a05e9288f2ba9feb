#include "tune/recovery.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/directory.h"
#include "base/inner_path.h"
#include "base/json.h"
#include "base/machine.h"
#include "cadre/error.h"
#include "run/checkpoint_files.h"
#include "run/stored_events.h"
#include "tune/journal.h"

namespace cadre::tune {
namespace fs = std::filesystem;
namespace {

constexpr std::int64_t kEventsPerFlush = 256;

// ---- Events

std::string describe(const store::DecisionRow& decision) {
  return fmt::format("\"{}\" for trial {} with {}", decision.kind, decision.trial, decision.data);
}

bool same(const store::DecisionRow& a, const store::DecisionRow& b) {
  return a.kind == b.kind && a.trial == b.trial && a.data == b.data;
}

// Returns true if the event's trial does not exist, which is possible only after a divergence.
bool concerns_nobody(const Event& event, std::size_t trials) {
  return std::visit(
      [&](const auto& content) {
        if constexpr (requires { content.trial; }) return content.trial >= trials;
        return false;
      },
      event);
}

// The event after which a decision first differed, a description of the difference, and all decisions from there on.
struct Divergence {
  std::int64_t event = 0;
  std::string description = {};
  std::vector<store::DecisionRow> decisions = {};
};

// Feeds recorded events to an experiment and compares every decision with the recorded one.
class EventFeeder {
 public:
  EventFeeder(const Snapshots::Subject& subject, Snapshots& snapshots, bool allow_divergence)
      : subject_(subject), snapshots_(snapshots), allow_divergence_(allow_divergence) {}

  // Feeds the store's rows after `event`, in order.
  void run(const store::ExperimentStore& store, std::int64_t event);

  std::int64_t last_event() const { return last_event_; }
  const std::optional<Divergence>& divergence() const { return divergence_; }
  // Returns the directories, relative to the experiment's, that were to be deleted.
  const std::vector<std::string>& deletions() const { return deletions_; }

 private:
  void take(std::int64_t sequence, double time, const Event& event);
  void take(const Action& action, double time);
  void compare(const store::DecisionRow& recorded);
  void end_of_event();
  void differs(const std::string& recorded, const std::string& now);

  const Snapshots::Subject& subject_;
  Snapshots& snapshots_;
  bool allow_divergence_;
  Actions actions_;
  std::vector<store::DecisionRow> decisions_;  // of the last event
  std::size_t compared_ = 0;                   // number of `decisions_` compared so far
  std::int64_t events_ = 0;
  std::int64_t last_event_ = 0;
  std::vector<std::string> deletions_;
  std::optional<Divergence> divergence_ = {};
};

void EventFeeder::run(const store::ExperimentStore& store, std::int64_t event) {
  last_event_ = event;
  store.visit({.result = [this](const store::ResultRow& row) { take(row.sequence, row.time, to_event(row)); },
               .event = [this](const store::EventRow& row) { take(row.sequence, row.time, to_event(row)); },
               .decision = [this](const store::DecisionRow& row) { compare(row); }},
              event);
  end_of_event();
  subject_.files.flush();
}

void EventFeeder::take(std::int64_t sequence, double time, const Event& event) {
  end_of_event();
  last_event_ = sequence;
  if (std::holds_alternative<ControllerStarted>(event)) subject_.running_time.begin_session(time);
  subject_.running_time.see(time);
  if (const auto* lost = std::get_if<TimeLost>(&event)) subject_.running_time.leave_out(lost->seconds);
  if (concerns_nobody(event, subject_.experiment.trials().size())) return;
  actions_.clear();
  subject_.experiment.handle(event, actions_);
  snapshots_.see(event, actions_);
  for (const Action& action : actions_) take(action, time);
  if (++events_ % kEventsPerFlush == 0) subject_.files.flush();
}

void EventFeeder::take(const Action& action, double time) {
  subject_.files.log(action, time);
  if (const auto* decision = std::get_if<RecordDecision>(&action)) {
    decisions_.push_back(
        {last_event_, std::string(to_string(decision->kind)), decision->trial, base::to_json(decision->data)});
  } else if (const auto* checkpoint = std::get_if<DeleteCheckpoint>(&action)) {
    deletions_.push_back(checkpoint->directory);
  } else if (const auto* discard = std::get_if<DiscardDirectory>(&action)) {
    deletions_.push_back(discard->directory);
  }
}

void EventFeeder::compare(const store::DecisionRow& recorded) {
  if (divergence_) return;
  if (compared_ == decisions_.size()) return differs(describe(recorded), "nothing");
  const store::DecisionRow& now = decisions_[compared_++];
  if (!same(now, recorded)) differs(describe(recorded), describe(now));
}

void EventFeeder::end_of_event() {
  if (!divergence_ && compared_ < decisions_.size()) differs("nothing more", describe(decisions_[compared_]));
  if (divergence_) divergence_->decisions.insert(divergence_->decisions.end(), decisions_.begin(), decisions_.end());
  decisions_.clear();
  compared_ = 0;
}

void EventFeeder::differs(const std::string& recorded, const std::string& now) {
  const std::string what =
      fmt::format("after event {} the store records {}, but this program decides {}", last_event_, recorded, now);
  if (!allow_divergence_)
    throw StorageError(what +
                       ". Continue it with the program that began it, or let RestoreOptions allow the divergence");
  divergence_ = Divergence{last_event_, what, {}};
}

// ---- The whole recovery

class Recovery {
 public:
  Recovery(store::ExperimentStore& store, Snapshots& snapshots, const Snapshots::Subject& subject, fs::path directory)
      : store_(store), snapshots_(snapshots), subject_(subject), directory_(std::move(directory)) {}

  Recovered run(bool allow_divergence);

 private:
  Snapshots::Place load_snapshot();
  void accept(const Divergence& divergence);
  void remove_leftovers(const std::vector<std::string>& deletions);
  void look_at_checkpoints();

  store::ExperimentStore& store_;
  Snapshots& snapshots_;
  const Snapshots::Subject& subject_;
  fs::path directory_;
  // Trials whose directories may contain leftovers.
  std::set<TrialIndex> untidy_;
  Recovered recovered_;
};

Recovered Recovery::run(bool allow_divergence) {
  const Snapshots::Place place = load_snapshot();
  untidy_ = subject_.experiment.live_trials();
  EventFeeder feeder(subject_, snapshots_, allow_divergence);
  try {
    run::replaying("the store", [&] { feeder.run(store_, place.event); });
  } catch (const StorageError& error) {
    throw StorageError(fmt::format("the experiment in {} cannot be continued: {}", directory_.string(), error.what()));
  }
  recovered_.last_event = feeder.last_event();
  if (!store_.recovered().empty()) recovered_.notes.push_back("Warning: " + store_.recovered());
  if (feeder.divergence()) accept(*feeder.divergence());
  const std::set<TrialIndex>& changed = snapshots_.changed_trials();
  untidy_.insert(changed.begin(), changed.end());
  if (store_.after_reboot())  // the lost end of the log may have concerned any trial
    for (const Trial& trial : subject_.experiment.trials()) untidy_.insert(trial.index);
  remove_leftovers(place.deletions);
  remove_leftovers(feeder.deletions());
  run::replaying("the store in " + directory_.string(), [&] { look_at_checkpoints(); });
  return std::move(recovered_);
}

Snapshots::Place Recovery::load_snapshot() {
  try {
    if (auto place = run::replaying("it", [&] { return snapshots_.load(subject_, store_.after_reboot()); }))
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
void Recovery::accept(const Divergence& divergence) {
  recovered_.diverged = true;
  recovered_.notes.push_back(
      fmt::format("Warning: {}; what it decides now counts from there on", divergence.description));
  store_.remove_decisions_from(divergence.event);
  for (const store::DecisionRow& decision : divergence.decisions) store_.add(decision);
  const run::CheckpointRegistry& registry = subject_.experiment.checkpoint_registry();
  std::set<run::CheckpointId> as_before;
  for (const store::CheckpointRow& row : store_.checkpoints()) {
    if (registry.contains(row.id) && registry.get(row.id).directory == row.directory) {
      as_before.insert(row.id);
    } else {
      store_.remove_checkpoint(row.id);
    }
  }
  for (const run::CheckpointId id : registry.all()) {
    const run::CheckpointRecord& record = registry.get(id);
    if (!as_before.contains(id)) store_.add(store::CheckpointRow{id, record.owner, record.step, record.directory});
  }
  for (const Trial& trial : subject_.experiment.trials()) store_.put(to_row(trial));
  store_.commit();
}

// Removes directories that a worker or the controller was about to report, commit or delete.
void Recovery::remove_leftovers(const std::vector<std::string>& deletions) {
  std::set<std::string> listed;
  const run::CheckpointRegistry& registry = subject_.experiment.checkpoint_registry();
  for (const run::CheckpointId id : registry.all()) listed.insert(registry.get(id).directory);
  // Removed at once, not by the file worker: a name may be used again as soon as trials run.
  const auto remove = [&](const std::string& directory) {
    if (!listed.contains(directory)) base::remove_inside(directory_, {directory, "the experiment's store"});
  };
  std::ranges::for_each(deletions, remove);
  for (const TrialIndex index : std::exchange(untidy_, {})) {
    const std::string& trial = subject_.experiment.trials().at(index).directory;
    if (!fs::exists(directory_ / trial)) continue;
    for (const std::string& name : base::list_directory(directory_ / trial)) {
      if (run::is_name_of_checkpoint(name)) remove(trial + "/" + name);
    }
  }
}

// Checks the contents of checkpoints from which a trial may continue, and the sizes of other checkpoints whose trial
// has not ended. Of all others, which may be many, only the directory must exist.
void Recovery::look_at_checkpoints() {
  const Experiment& experiment = subject_.experiment;
  const run::CheckpointRegistry& registry = experiment.checkpoint_registry();
  const std::string boot = base::boot_id();
  std::map<run::CheckpointId, store::CheckpointRow> rows;
  for (store::CheckpointRow& row : store_.checkpoints()) rows[row.id] = std::move(row);
  std::set<run::CheckpointId> lost;
  const auto check = [&](run::CheckpointId id, run::Look look) {
    if (lost.contains(id)) return;
    const std::string fault = run::fault_of_checkpoint(directory_, rows.at(id), boot, look);
    if (fault.empty()) return;
    recovered_.notes.push_back(fmt::format("Warning: the checkpoint {} is given up: {}", rows.at(id).directory, fault));
    lost.insert(id);
  };
  for (const run::CheckpointId id : registry.all())
    check(id, experiment.trials().at(registry.get(id).owner).ended() ? run::Look::directory : run::Look::sizes);
  std::vector<run::CheckpointId> needed = experiment.needed_checkpoints();
  while (!needed.empty()) {
    const run::CheckpointId id = needed.back();
    needed.pop_back();
    check(id, run::Look::contents);
    if (const auto older = registry.ancestor(id); older && lost.contains(id)) needed.push_back(*older);
  }
  recovered_.lost_checkpoints.assign(lost.begin(), lost.end());
  for (const auto& [id, row] : rows) {
    if (!row.synced && !lost.contains(id)) recovered_.unsealed_checkpoints.emplace_back(id, row.directory);
  }
}

}  // namespace

Recovered recover(store::ExperimentStore& store, Snapshots& snapshots, const Snapshots::Subject& subject,
                  const fs::path& directory, bool allow_divergence) {
  return Recovery(store, snapshots, subject, directory).run(allow_divergence);
}

}  // namespace cadre::tune
