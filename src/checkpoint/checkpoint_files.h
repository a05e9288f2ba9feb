// The directory of a checkpoint: its names, its contents and their validation. docs/formats.md, under "Checkpoints",
// describes it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/inner_path.h"
#include "cadre/value.h"
#include "store/tables.h"

namespace cadre::checkpoint {

// The file with a checkpoint's metadata, in its directory.
inline constexpr const char* kMetadataName = ".metadata.json";
// Returns the directory's name in its trial's directory: "checkpoint_000003", numbered from 0.
std::string checkpoint_name(std::int64_t number);
// Returns the common prefix of the directories that workers of an attempt fill to report them.
std::string reporting_prefix(std::int64_t attempt);
// Returns the name for a copy of the part that a rank has reported for the checkpoint with this number.
std::string copy_name(std::int64_t number, std::int64_t rank);
bool is_reporting_name(std::string_view name);
// A name in an object storage, which cannot rename, for a directory that is stored before it is committed.
struct StoredName {
  std::string directory = {};
  std::string part = {};  // a directory in that one; empty: none
};
// Returns "checkpoint_2_5" for ".reporting_2_5", and for copy_name(7, 1) the part "1" of "checkpoint_7".
StoredName stored_name(const std::string& reported);
// Returns true for names of reported and of committed directories.
bool is_name_of_checkpoint(std::string_view name);

// Copies a checkpoint without its metadata, for another run, into an empty directory. Files are hard links if the file
// system supports them. Throws OutOfSpace or StorageError.
void link_checkpoint(const std::filesystem::path& from, const std::filesystem::path& to);

// A checkpoint's metadata, besides its files.
struct CheckpointMetadata {
  std::string trial_id = {};
  Value training_iteration = {};
  Value timestamp = {};  // seconds since 1970
  // The final name of the directory, if the name itself does not show that it is a checkpoint; empty: not recorded.
  std::string directory = {};
};

// Writes the metadata, and the list of all other files that exist now, into the directory; replaces the metadata of
// another checkpoint. No process may be reading it yet. Throws OutOfSpace or StorageError, the latter also if it
// contains anything but files and directories.
void write_metadata(const std::filesystem::path& directory, const CheckpointMetadata& metadata);

// Renames a reported directory to its name as a checkpoint; does nothing if that was done already. Both are paths below
// `root`, and no link on them is followed. Throws StorageError, also if neither exists.
void commit_directory(const std::filesystem::path& root, const std::string& reported, const std::string& committed);
// Removes a directory of a checkpoint, also one that is half made, with its files. Leaves alone what a process is about
// to exchange for a checkpoint (storage::is_in_transfer). Follows no links. Throws StorageError.
void remove_directory(const std::filesystem::path& root, const base::InnerPath& directory);
// Frees the name of such a directory at once: gives it one that no report uses, below the same parent, so that its
// files may be removed later. Returns its path below `root` then; empty if there is nothing left to remove, or if a
// process is about to exchange it. Removes the directory itself if it cannot be renamed. Follows no links. Throws
// StorageError.
std::string set_aside(const std::filesystem::path& root, const base::InnerPath& directory);

// Returns true if a directory has the metadata of a checkpoint: it was committed, or is about to be.
bool is_committed(const std::filesystem::path& directory);
// Returns true if, by its metadata or its list of files in a storage, Cadre gave the directory its name to commit it,
// and not another program.
bool was_to_be_committed(const std::filesystem::path& directory);

// Returns {"<path inside the directory>": {"size": bytes}} for every file below a directory. Throws StorageError, also
// if it contains anything but files and directories.
Dict list_files(const std::filesystem::path& directory);

// Seals a checkpoint: makes the directory `root / directory`, all files in it and its name below `root` survive a loss
// of power. Returns the list of files with "xxh3" beside "size": 16 hexadecimal digits. Waits for the disk. Throws
// StorageError. If the files are in a storage only (storage/remote_directory.h), seals and returns the list recorded
// there; if that lacks checksums, because a worker wrote them there, seals them there first and records the checksums.
Dict seal_files(const std::filesystem::path& root, const std::filesystem::path& directory);

// Returns the first difference between a directory's files and the list, as a message; empty if there is none. Contents
// are compared if `contents` is set and the list has checksums. Files that are not listed are ignored.
std::string fault_of_files(const std::filesystem::path& directory, const Dict& files, bool contents);

// Depth of a check: the directory exists, also its files and their sizes, or also their contents.
enum class CheckDepth { directory, sizes, contents };

// Returns the fault of a checkpoint in the store of the experiment in a directory; empty if there is none. A checkpoint
// that was not sealed is valid only in the boot of its commit; `boot` is the present one. Throws base::OutOfResources
// if this process lacks the resources to check it.
std::string fault_of_checkpoint(const std::filesystem::path& experiment, const store::CheckpointRow& row,
                                const std::string& boot, CheckDepth depth);

}  // namespace cadre::checkpoint
