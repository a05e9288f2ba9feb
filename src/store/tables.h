// The tables of an experiment store, a row as a struct each. docs/formats.md says what is in them.
#pragma once

#include <cstdint>
#include <string>
#include <tuple>

#include "store/checked_rows.h"

namespace cadre::store {

// A fact about the whole experiment.
struct MetaRow {
  static constexpr Table table{"meta", "key, value", Table::Key::text};
  static auto fields(auto& row) { return std::tie(row.key, row.value); }

  std::string key = {};
  std::string value = {};
};

// One result, as a worker reported it. `sequence` is given by the store and shared with EventRow: both in one order.
struct ResultRow {
  static constexpr Table table{"results", "sequence, time, trial, attempt, step, repeated, metrics, checkpoint"};
  static auto fields(auto& row) {
    return std::tie(row.sequence, row.time, row.trial, row.attempt, row.step, row.repeated, row.metrics,
                    row.checkpoint);
  }

  std::int64_t sequence = 0;
  double time = 0;  // seconds since 1970
  std::int64_t trial = 0;
  std::int64_t attempt = 0;
  std::int64_t step = 0;
  bool repeated = false;        // the step was reported before, in an earlier attempt of the same lineage
  std::string metrics = {};     // JSON
  std::string checkpoint = {};  // what it was saved in, as the kind of run writes that; empty: nothing
};

// Anything else that happened.
struct EventRow {
  static constexpr Table table{"events", "sequence, time, kind, trial, attempt, data"};
  static auto fields(auto& row) { return std::tie(row.sequence, row.time, row.kind, row.trial, row.attempt, row.data); }

  std::int64_t sequence = 0;
  double time = 0;
  std::string kind = {};
  std::int64_t trial = -1;  // -1: none
  std::int64_t attempt = 0;
  std::string data = {};  // JSON
};

// What followed from the event or result with the number `cause`, which never falls from one decision to the next. "Go
// on" is not recorded.
struct DecisionRow {
  static constexpr Table table{"decisions", "id, cause, kind, trial, data"};
  static auto fields(auto& row) { return std::tie(row.id, row.cause, row.kind, row.trial, row.data); }

  std::int64_t cause = 0;
  std::string kind = {};
  std::int64_t trial = -1;
  std::string data = {};  // JSON
  std::int64_t id = 0;    // given by the store
};

// A trial as it stands, for people and programs that look; a restore does not read it.
struct TrialRow {
  static constexpr Table table{"trials", "trial, trial_id, status, attempt, config, tag, directory, error"};
  static auto fields(auto& row) {
    return std::tie(row.trial, row.trial_id, row.status, row.attempt, row.config, row.tag, row.directory, row.error);
  }

  std::int64_t trial = 0;
  std::string trial_id = {};
  std::string status = {};
  std::int64_t attempt = 0;
  std::string config = {};  // JSON
  std::string tag = {};
  std::string directory = {};  // name inside the experiment's directory
  std::string error = {};
};

struct CheckpointRow {
  static constexpr Table table{"checkpoints", "id, trial, step, directory, boot, synced, manifest"};
  static auto fields(auto& row) {
    return std::tie(row.id, row.trial, row.step, row.directory, row.boot, row.synced, row.manifest);
  }

  std::int64_t id = 0;
  std::int64_t trial = 0;
  std::int64_t step = 0;
  std::string directory = {};  // path inside the experiment's directory
  std::string boot = {};       // base::boot_id() of when it was committed; empty in a row to be added: the present one
  bool synced = false;         // its files survive a loss of power
  std::string manifest = {};   // JSON: what its files must be; may be empty
};

// The state of whoever made the decisions, after the event or result with the number `sequence` was handled.
struct Snapshot {
  static constexpr Table table{"snapshots", "sequence, state"};
  static auto fields(auto& row) { return std::tie(row.sequence, row.state); }

  std::int64_t sequence = 0;
  std::string state = {};
};

// A trial that had ended before the last snapshot, as it was then; the snapshot does not have it.
struct EndedTrialRow {
  static constexpr Table table{"ended_trials", "trial, state"};
  static auto fields(auto& row) { return std::tie(row.trial, row.state); }

  std::int64_t trial = 0;
  std::string state = {};
};

}  // namespace cadre::store
