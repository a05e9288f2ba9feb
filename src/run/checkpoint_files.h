// The directory of a checkpoint: its names, what is in it, and whether it is as it was written. docs/formats.md, under
// "Checkpoints", describes it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "cadre/value.h"
#include "store/tables.h"

namespace cadre::run {

// In a checkpoint's directory: what is said of it.
inline constexpr const char* kMetadataName = ".metadata.json";
// Inside its trial's directory: "checkpoint_000003", numbered from 0.
std::string checkpoint_name(std::int64_t number);
// How the names of directories begin that a worker fills to report them: those of an attempt, and all.
std::string reporting_prefix(std::int64_t attempt);
// The name of a copy of what a rank has reported as a part of the checkpoint with this number.
std::string copy_name(std::int64_t number, std::int64_t rank);
bool is_reporting_name(std::string_view name);
// Whether a name is of either kind.
bool is_name_of_checkpoint(std::string_view name);

// A copy of a checkpoint without what is said of it, for another run, in a directory that is empty. Its files are
// shared where the file system can. Throws OutOfSpace or StorageError.
void link_checkpoint(const std::filesystem::path& from, const std::filesystem::path& to);

// What is said of a checkpoint beside its files.
struct CheckpointMetadata {
  std::string trial_id = {};
  Value training_iteration = {};
  Value timestamp = {};  // seconds since 1970
  // The name that the directory is about to get, where that says nothing of what it is; empty: not noted.
  std::string directory = {};
};

// Writes the metadata, and the list of all other files that are there now, into the directory, also over those of
// another checkpoint. Nobody may be reading it yet. Throws OutOfSpace or StorageError, the latter also for what is
// neither file nor directory.
void write_metadata(const std::filesystem::path& directory, const CheckpointMetadata& metadata);

// Gives a directory that was reported its name as a checkpoint; nothing happens where it has it already. Both are paths
// below `root`, and no link on them is followed. Throws StorageError, also where there is neither.
void commit_directory(const std::filesystem::path& root, const std::string& reported, const std::string& committed);

// Whether a directory has become a checkpoint, as its metadata says, or is about to.
bool is_committed(const std::filesystem::path& directory);
// Whether a directory was given its name to become a checkpoint, as its metadata says, and not by somebody else.
bool was_to_be_committed(const std::filesystem::path& directory);

// {"<path inside the directory>": {"size": bytes}} for every file below a directory. Throws StorageError, also for what
// is neither file nor directory.
Dict list_files(const std::filesystem::path& directory);

// Makes the directory `root / directory`, all files in it and its name below `root` survive a loss of power. Returns
// the list with "xxh3" beside "size": 16 hexadecimal digits. Waits for the disk. Throws StorageError. Of one whose
// files are in a storage only (storage/remote_directory.h) the list is known.
Dict seal_files(const std::filesystem::path& root, const std::filesystem::path& directory);

// What is wrong with the files of a directory, for people; empty when they are as listed. Contents are compared where
// the list has their checksums and `contents` asks for it. Files that are not listed do not matter.
std::string fault_of_files(const std::filesystem::path& directory, const Dict& files, bool contents);

// How closely a checkpoint is looked at: whether it is there, its files and their sizes, or their contents as well.
enum class Look { directory, sizes, contents };

// What is wrong with a checkpoint that the store of the experiment in a directory lists; empty when nothing is. One
// that was not sealed is not trusted in another boot than that of its commit; `boot` is the present one. Throws
// base::OutOfResources where this process cannot look.
std::string fault_of_checkpoint(const std::filesystem::path& experiment, const store::CheckpointRow& row,
                                const std::string& boot, Look look);

}  // namespace cadre::run
