#include "train/recovery.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/directory.h"
#include "base/machine.h"
#include "cadre/error.h"
#include "checkpoint/checkpoint_files.h"
#include "control/replay.h"
#include "train/journal.h"

namespace cadre::train {
namespace fs = std::filesystem;
namespace {

bool is_there(const fs::path& path) {
  std::error_code unreadable;
  return fs::is_directory(path, unreadable);
}

// Returns true if the files of a pending checkpoint are there, also after a commit that was interrupted after its
// rename. After a power loss, files that were not synced cannot be trusted.
bool is_whole(const PendingCheckpoint& pending, const control::WorkPlace& work_place, bool after_reboot) {
  if (after_reboot) return false;
  const auto is_there_as_reported = [&](const CheckpointPart& part) {
    return !part.node && is_there(work_place.reported(part.path));  // directories of nodes end with their controller
  };
  if (!std::ranges::all_of(pending.reported.parts, is_there_as_reported)) work_place.finish_commit(pending.directory);
  if (is_there(work_place.directory() / pending.directory)) return true;
  return std::ranges::all_of(pending.reported.parts, is_there_as_reported);
}

// Checks the contents of the latest checkpoint, or of the next older one if that is lost; checks only the sizes of the
// others.
void check_checkpoints(const store::ExperimentStore& store, const Run& run, const fs::path& directory,
                       Recovered& recovered) {
  const std::string boot = base::boot_id();
  std::optional<checkpoint::CheckpointId> needed = run.checkpoints().latest();
  std::vector<store::CheckpointRow> rows = store.checkpoints();
  for (auto row = rows.rbegin(); row != rows.rend(); ++row) {  // the newest first
    const checkpoint::CheckDepth depth =
        needed == row->id ? checkpoint::CheckDepth::contents : checkpoint::CheckDepth::sizes;
    const std::string fault = checkpoint::fault_of_checkpoint(directory, *row, boot, depth);
    if (fault.empty()) {
      recovered.add_checkpoint(*row, run.checkpoints().registry());
      continue;
    }
    recovered.notes.push_back(fmt::format("Warning: the checkpoint {} is given up: {}", row->directory, fault));
    recovered.lost_checkpoints.push_back(row->id);
    if (needed == row->id) {
      const auto older = std::next(row);
      needed = older == rows.rend() ? std::nullopt : std::optional(older->id);
    }
  }
}

}  // namespace

std::vector<std::string> leftovers(const Run& run, const control::WorkPlace& work_place) {
  const fs::path& directory = work_place.directory();
  std::set<std::string> needed;
  const checkpoint::CheckpointRegistry& registry = run.checkpoints().registry();
  for (const checkpoint::CheckpointId id : registry.all()) needed.insert(registry.get(id).directory);
  for (const PendingCheckpoint& pending : run.checkpoints().pending()) {
    needed.insert(pending.directory);
    for (const CheckpointPart& part : pending.reported.parts) {
      needed.insert(part.path);
      needed.insert(checkpoint::copy_name(pending.number, part.rank));  // a thread may be copying to it
    }
  }
  std::vector<std::string> left = work_place.reported_where_published({});
  std::erase_if(left, [&](const std::string& name) { return needed.contains(name); });
  for (const std::string& name : base::list_directory(directory)) {
    if (needed.contains(name)) continue;
    if (checkpoint::is_name_of_checkpoint(name) || checkpoint::was_to_be_committed(directory / name))
      left.push_back(name);
  }
  return left;
}

Recovered recover(store::ExperimentStore& store, Run& run, const control::WorkPlace& work_place,
                  const Witness& witness) {
  const fs::path& directory = work_place.directory();
  Recovered recovered;
  control::DecisionCheck check;
  Actions actions;
  const auto take = [&](const auto& row, const auto&) -> const Actions& {
    const Event event = to_event(row);
    actions.clear();
    run.handle(event, actions);
    witness(event, actions, row.time);
    return actions;
  };
  try {
    control::replaying("the store", [&] { recovered.last_event = control::replay<Run>(store, 0, check, take); });
  } catch (const StorageError& error) {
    throw StorageError(fmt::format("the training run in {} cannot be continued: {}", directory.string(), error.what()));
  }
  if (!store.recovered().empty()) recovered.notes.push_back("Warning: " + store.recovered());
  for (const PendingCheckpoint& pending : run.checkpoints().pending()) {
    if (!is_whole(pending, work_place, store.after_reboot())) recovered.lost_uploads.push_back(pending.number);
  }
  for (const std::string& left : leftovers(run, work_place))
    recovered.set_aside(work_place, {left, directory.native()});
  check_checkpoints(store, run, directory, recovered);
  return recovered;
}

}  // namespace cadre::train
