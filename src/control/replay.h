// Replays recorded events in a core, and compares every decision with the recorded one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/inner_path.h"
#include "cadre/error.h"
#include "cadre/value.h"
#include "checkpoint/checkpoint_registry.h"
#include "store/experiment_store.h"

namespace cadre::control {

class WorkPlace;

// The findings of a recovery in the store and the directory of an experiment or a training run.
struct Recovered {
  std::int64_t last_event = 0;  // last one in the store
  // Listed in the store, but missing or damaged.
  std::vector<checkpoint::CheckpointId> lost_checkpoints = {};
  // Checkpoints that a loss of power could still damage, and their directories, relative to the experiment's or run's.
  std::vector<std::pair<checkpoint::CheckpointId, std::filesystem::path>> unsealed_checkpoints = {};
  // Checkpoints that are sealed, which no event says: those of a machine that was lost after it had published them.
  // With the lists of their files.
  std::map<checkpoint::CheckpointId, Dict> sealed_checkpoints = {};
  // Directories that were set aside, to be removed; relative, too.
  std::vector<std::filesystem::path> to_remove = {};
  std::vector<std::string> notes = {};  // lines for the user

  // Adds a checkpoint that is neither missing nor damaged to the sealed or unsealed ones, if it belongs to either.
  void add_checkpoint(const store::CheckpointRow& row, const checkpoint::CheckpointRegistry& registry);
  // Sets a directory aside that belongs to nothing in the store: its name may be used again as soon as workers run, and
  // to remove its files may take long. Removes at once what a worker has published of it. Throws StorageError.
  void set_aside(const WorkPlace& work_place, const base::InnerPath& directory);
};

// The event after which a decision first differed, a description of the difference, and all decisions from there on.
struct Divergence {
  std::int64_t event = 0;
  std::string description = {};
  std::vector<store::DecisionRow> decisions = {};
};

// Compares decisions with the recorded ones, in the order of the store's rows. The first difference throws
// StorageError, or begins the divergence if that is allowed.
class DecisionCheck {
 public:
  // `advice` follows the message about a difference: what else than the program that began it may help; may be empty.
  explicit DecisionCheck(bool allow_divergence = false, std::string advice = {})
      : allow_divergence_(allow_divergence), advice_(std::move(advice)) {}

  void begin_event(std::int64_t sequence);
  // Adds a decision that followed from the event.
  void add(store::DecisionRow decision) { decisions_.push_back(std::move(decision)); }
  void compare(const store::DecisionRow& recorded);
  void end_event();

  const std::optional<Divergence>& divergence() const { return divergence_; }

 private:
  void differs(const std::string& recorded, const std::string& now);

  bool allow_divergence_;
  std::string advice_;
  std::int64_t event_ = 0;
  std::vector<store::DecisionRow> decisions_ = {};  // of the event
  std::size_t compared_ = 0;                        // number of them already compared
  std::optional<Divergence> divergence_ = {};
};

// Replays the store's rows after `event`, in order; returns the sequence number of the last one. `take` handles
// the event of a ResultRow or an EventRow, given the decisions that were recorded after it, and returns the actions
// that follow from it.
template <class Core, class Take>
std::int64_t replay(const store::ExperimentStore& store, std::int64_t event, DecisionCheck& check, const Take& take) {
  std::int64_t last = event;
  std::variant<std::monostate, store::ResultRow, store::EventRow> read;  // the last one, which is not taken yet
  std::vector<store::DecisionRow> recorded;                              // after it
  const auto take_row = [&]<class Row>(const Row& row) {
    if constexpr (!std::is_same_v<Row, std::monostate>) {
      last = row.sequence;
      check.begin_event(row.sequence);
      for (const auto& action : take(row, std::as_const(recorded))) {
        if (const auto* decision = std::get_if<typename Core::RecordDecision>(&action))
          check.add(to_row(*decision, row.sequence));
      }
      for (const store::DecisionRow& decision : recorded) check.compare(decision);
      check.end_event();
    }
    recorded.clear();
  };
  const auto next = [&](const auto& row) {
    std::visit(take_row, read);
    read = row;
  };
  store.visit({.result = next, .event = next, .decision = [&](const auto& row) { recorded.push_back(row); }}, event);
  std::visit(take_row, read);
  return last;
}

// Calls `act`, which feeds rows of a store to what made them. Its state is looked up by numbers that rows name; rows
// that somebody has changed name others. Throws StorageError then.
template <class Act>
decltype(auto) replaying(const std::string& source, const Act& act) {
  try {
    return act();
  } catch (const std::logic_error& error) {
    throw StorageError(source + " names what was not there (" + error.what() + "): it was changed by another program");
  }
}

}  // namespace cadre::control
