// The tables of an experiment store, each row type as a struct. docs/formats.md describes their contents.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
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

// A result, as a worker reported it. The store assigns `sequence`, which is shared with EventRow, so that both are in
// one order.
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
  bool repeated = false;        // adds no result: its step was acknowledged before, or its group had failed
  std::string metrics = {};     // JSON
  std::string checkpoint = {};  // the checkpoint it was saved in, in the form of the kind of run; empty: none
};

// An event other than a result.
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

// A decision made on the event or result with the number `cause`. `cause` never falls from one decision to the next.
// Decisions to continue are not recorded.
struct DecisionRow {
  static constexpr Table table{"decisions", "id, cause, kind, trial, data"};
  static auto fields(auto& row) { return std::tie(row.id, row.cause, row.kind, row.trial, row.data); }

  std::int64_t cause = 0;
  std::string kind = {};
  std::int64_t trial = -1;
  std::string data = {};  // JSON
  std::int64_t id = 0;    // assigned by the store
};

// Returns true if a trial with this status in its row has ended.
inline bool is_status_of_ended(std::string_view status) {
  return status == "TERMINATED" || status == "STOPPED" || status == "ERROR";
}

// A trial's present state, for people and programs that read the store; a restore does not read it.
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
  std::string directory = {};  // name in the experiment's directory
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
  std::string directory = {};  // path relative to the experiment's directory
  std::string boot = {};       // base::boot_id() at its commit; empty in a row to be added: the present one
  bool synced = false;         // its files survive a loss of power
  std::string manifest = {};   // JSON list of its files, with checksums; may be empty
};

// The core's state after it handled the event or result with the number `sequence`.
struct Snapshot {
  static constexpr Table table{"snapshots", "sequence, state"};
  static auto fields(auto& row) { return std::tie(row.sequence, row.state); }

  std::int64_t sequence = 0;
  std::string state = {};
};

// The state of a trial that had ended before the last snapshot; the snapshot does not contain it.
struct EndedTrialRow {
  static constexpr Table table{"ended_trials", "trial, state"};
  static auto fields(auto& row) { return std::tie(row.trial, row.state); }

  std::int64_t trial = 0;
  std::string state = {};
};

}  // namespace cadre::store
