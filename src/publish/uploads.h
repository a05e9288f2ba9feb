// Uploads of many files at a time.
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
  // Condition of the upload: the stored file has this version, or does not exist if the inner value is empty. No
  // condition if the outer value is empty.
  std::optional<std::optional<storage::Version>> expected = {};
};

struct Uploaded {
  storage::Contents contents = {};  // of an unconditional upload
  storage::Version version = {};    // of a conditional upload; empty: the condition did not hold
};

// Treatment of a local file that cannot be read to its end.
enum class Unreadable { fail, skip };

// Uploads all files, a few at a time. Returns the results in the same order; a skipped file has none. After the first
// exception, or when `stop` becomes true, starts no further upload, waits for its threads and throws that exception or
// Interrupted.
std::vector<std::optional<Uploaded>> upload_all(storage::Storage& storage, const std::vector<Upload>& uploads,
                                                const std::atomic<bool>& stop, Unreadable unreadable);

// Uploads all files below a directory. Returns their list in the form of storage/remote_directory.h.
Dict upload_directory(storage::Storage& storage, const std::filesystem::path& directory, const std::string& name,
                      const std::atomic<bool>& stop);

}  // namespace cadre::publish
