// Uploads many files, several at a time.
#pragma once

#include <atomic>
#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "cadre/value.h"
#include "storage/storage.h"

namespace cadre::storage {

struct Upload {
  std::filesystem::path file;
  std::string name;
  // Condition of the upload: the stored file has this version, or does not exist if the inner value is empty. No
  // condition if the outer value is empty.
  std::optional<std::optional<Version>> expected = {};
};

struct Uploaded {
  Contents contents = {};  // of an unconditional upload
  Version version = {};    // of a conditional upload; empty: the condition did not hold
};

// Treatment of a local file that cannot be read to its end.
enum class Unreadable { fail, skip };

// Uploads all files, four at a time. Returns the results in the same order; a skipped file has none. After the first
// exception starts no further upload, waits for its threads and throws that exception. When `stop` becomes true, also
// gives up the uploads that have begun, and throws Interrupted.
std::vector<std::optional<Uploaded>> upload_all(Storage& storage, const std::vector<Upload>& uploads,
                                                const std::atomic<bool>& stop, Unreadable unreadable);

// Uploads files of a directory, by their paths inside it, to a directory with this name. Returns their list in the form
// of storage/remote_directory.h. Retries each for up to `patience` while the storage does not answer. Throws as
// upload_all() does.
Dict upload_files(Storage& storage, const std::filesystem::path& directory, const std::vector<std::string>& files,
                  const std::string& name, const std::atomic<bool>& stop,
                  std::chrono::steady_clock::duration patience = std::chrono::seconds(0));

}  // namespace cadre::storage
