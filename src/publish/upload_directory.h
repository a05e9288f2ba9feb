// Uploads the directory of a checkpoint.
#pragma once

#include <atomic>
#include <filesystem>
#include <string>

#include "cadre/value.h"
#include "storage/storage.h"

namespace cadre::publish {

// Uploads all files below a directory. Returns their list in the form of storage/remote_directory.h. Throws as
// storage::upload_all() does.
Dict upload_directory(storage::Storage& storage, const std::filesystem::path& directory, const std::string& name,
                      const std::atomic<bool>& stop);

}  // namespace cadre::publish
