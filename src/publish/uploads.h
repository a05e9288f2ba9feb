// Many files at a time into a storage.
#pragma once

#include <atomic>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "cadre/value.h"
#include "storage/storage.h"

namespace cadre::publish {

struct Upload {
  std::filesystem::path file;
  std::string name;
  // A condition: only in the place of the file of that version; of none, where the inner one is empty.
  std::optional<std::optional<storage::Version>> expected = {};
};

struct Uploaded {
  storage::Contents contents = {};  // of one without a condition
  storage::Version version = {};    // of one with a condition; empty: another file is there
};

// What becomes of a local file that cannot be read to its end.
enum class Unreadable { fail, skip };

// Uploads all files, a few at a time, and says what went over, in their order; nothing of a file that was skipped.
// After the first exception, or when `stop` becomes true, none is begun any more; when all threads have ended the
// exception is thrown, or an Interrupted.
std::vector<std::optional<Uploaded>> upload_all(storage::Storage& storage, const std::vector<Upload>& uploads,
                                                const std::atomic<bool>& stop, Unreadable unreadable);

// The same with all files below a directory; the list of storage/remote_directory.h.
Dict upload_directory(storage::Storage& storage, const std::filesystem::path& directory, const std::string& name,
                      const std::atomic<bool>& stop);

}  // namespace cadre::publish
