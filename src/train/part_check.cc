#include "train/part_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "base/name.h"
#include "cadre/error.h"
#include "checkpoint/checkpoint_files.h"
#include "train/validator.h"

namespace cadre::train {
namespace fs = std::filesystem;
namespace {

bool is_real_directory(const fs::path& path) {
  std::error_code unusable;  // a name may be longer than the file system allows
  return fs::is_directory(fs::symlink_status(path, unusable));
}

// Returns true for names of the files and directories that a run creates itself, other than checkpoints.
bool is_name_of_run(std::string_view name) {
  constexpr std::array beginnings{"experiment.db", "rank_",       "params.json", "result.json",
                                  "progress.csv",  "events.out.", "error.txt",   kValidationsName};
  if (name.starts_with('.') || name == "objects") return true;
  return std::ranges::any_of(beginnings, [&](const char* beginning) { return name.starts_with(beginning); });
}

// Returns true if the paths are equal or one contains the other.
bool overlap(const std::string& a, const std::string& b) {
  const std::string& shorter = a.size() < b.size() ? a : b;
  const std::string& longer = a.size() < b.size() ? b : a;
  return longer.starts_with(shorter) && (longer.size() == shorter.size() || longer[shorter.size()] == '/');
}

void require_unused(const std::string& directory, const Checkpoints& checkpoints) {
  const auto require = [&](const std::string& other) {
    if (overlap(directory, other))
      throw InvalidArgument(
          fmt::format("the directory {} cannot become a checkpoint: {} is one already", directory, other));
  };
  const checkpoint::CheckpointRegistry& registry = checkpoints.registry();
  for (const checkpoint::CheckpointId id : registry.all()) require(registry.get(id).directory);
  for (const PendingCheckpoint& pending : checkpoints.pending()) {
    if (pending.state != PendingCheckpoint::State::promised) require(pending.directory);  // a promised one may be it
  }
}

// The directory of a deleted checkpoint is removed after the store is synced, whatever it is by then.
void require_not_removed(const std::string& directory, const std::vector<std::string>& removals) {
  const auto removed = std::ranges::find_if(removals, [&](const std::string& one) { return overlap(directory, one); });
  if (removed == removals.end()) return;
  throw InvalidArgument(
      fmt::format("the directory {} cannot become a checkpoint: {}, which was one, is just being removed; report each "
                  "checkpoint in a directory of its own",
                  directory, *removed));
}

void check_path(const CheckpointPart& part, const fs::path& run_directory) {
  const fs::path path(part.path);
  const auto require = [&](bool good) {
    if (!good)
      throw InvalidArgument("the directory \"" + part.path + "\" that was reported as a checkpoint is none in " +
                            run_directory.string());
  };
  switch (part.kind) {
    case CheckpointPart::Kind::ours:
    case CheckpointPart::Kind::copying:
      return require(checkpoint::is_reporting_name(part.path) && part.path.find(',') == std::string::npos &&
                     (part.node || is_real_directory(run_directory / path)));
    case CheckpointPart::Kind::borrowed:
      if (!path.is_absolute() || !is_real_directory(path))
        throw InvalidArgument("the checkpoint " + part.path + " that was reported is no directory");
      return;
    case CheckpointPart::Kind::in_place:
      return require(path.is_relative() && path == path.lexically_normal() && !path.empty() && *path.begin() != ".." &&
                     !is_name_of_run(path.begin()->string()) && (part.node || is_real_directory(run_directory / path)));
    case CheckpointPart::Kind::promised:
      return;
  }
  throw InvalidArgument("a checkpoint of an unknown kind was reported");
}

}  // namespace

void check_checkpoint_name(const std::string& name, const fs::path& run_directory, NameCheck check) {
  std::string fault = base::fault_of_file_name(name);
  if (fault.empty() && base::safe_file_name(name, name.size()) != name)
    fault = "it may have letters, digits and _.,=@+- only";
  if (fault.empty() && (is_name_of_run(name) || checkpoint::is_name_of_checkpoint(name)))
    fault =
        "Cadre gives such names itself: checkpoint_ and a number, and those of a run's own files; others may begin "
        "with "
        "checkpoint_ too";
  const fs::path directory = run_directory / name;
  std::error_code unusable;
  if (fault.empty() && (check == NameCheck::may_be_begun ? checkpoint::is_committed(directory)
                                                         : fs::exists(fs::symlink_status(directory, unusable))))
    fault = "it exists already in " + run_directory.string() + "; every checkpoint has a name of its own";
  if (!fault.empty()) throw InvalidArgument("checkpoint_dir_name \"" + name + "\" cannot name a checkpoint: " + fault);
}

std::string path_inside(const fs::path& run_directory, const fs::path& directory, const std::string& doing) {
  std::error_code missing;
  const fs::path whole = fs::canonical(directory, missing);
  if (missing || !fs::is_directory(whole))
    throw InvalidArgument(fmt::format("{} {}, which is no directory", doing, directory.string()));
  const fs::path inside = whole.lexically_relative(fs::canonical(run_directory));
  if (inside.empty() || *inside.begin() == "..")
    throw InvalidArgument(fmt::format("{} {}, which does not lie in the run's directory {}", doing, directory.string(),
                                      run_directory.string()));
  if (inside == "." || is_name_of_run(inside.begin()->string()))
    throw InvalidArgument(fmt::format("{} {}, which belongs to the run itself: make a directory of its own in {}",
                                      doing, directory.string(), run_directory.string()));
  return inside;
}

void check_part(const CheckpointPart& part, const fs::path& run_directory) { check_path(part, run_directory); }

void check_together(const GroupCheckpoint& checkpoint, const fs::path& run_directory, const Checkpoints& checkpoints,
                    const std::vector<std::string>& removals) {
  for (const CheckpointPart& part : checkpoint.parts) {
    if (part.kind != CheckpointPart::Kind::in_place) continue;
    require_unused(part.path, checkpoints);
    require_not_removed(part.path, removals);
  }
  const bool is_named = !checkpoint.directory.empty() && std::ranges::any_of(checkpoint.parts, is_merged);
  if (!is_named) return;
  check_checkpoint_name(checkpoint.directory, run_directory, NameCheck::must_be_free);
  require_unused(checkpoint.directory, checkpoints);
}

}  // namespace cadre::train
