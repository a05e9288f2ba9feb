#include "run/run_directory.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "base/directory.h"
#include "cadre/error.h"
#include "storage/remote_directory.h"
#include "store/experiment_lock.h"
#include "store/experiment_store.h"
#include "store/object_files.h"

namespace cadre::run {
namespace fs = std::filesystem;
namespace {

// Whether nothing is in a directory, or only what a controller leaves that is killed before there is a store.
bool holds_beginnings_only(const fs::path& directory) {
  return std::ranges::all_of(base::list_directory(directory), [](const std::string& name) {
    return name == store::ExperimentLock::kFileName || name == storage::kPublishedToFile ||
           name == store::kObjectsDirectory || name.starts_with(store::ExperimentStore::kUnfinishedName);
  });
}

}  // namespace

std::string free_name(const fs::path& storage, const std::string& function) {
  const std::string name = function + "_" + base::date_text(base::wall_seconds());
  for (int i = 1;; ++i) {
    std::string candidate = i == 1 ? name : fmt::format("{}_{}", name, i);
    if (!fs::exists(storage / candidate)) return candidate;
  }
}

bool holds_store(const fs::path& directory) {
  std::error_code unreadable;
  return fs::exists(directory / store::kStoreFileName, unreadable);
}

void make_new_directory(const fs::path& directory, const Tenant& tenant) {
  const std::string subject = "the " + tenant.what + " " + directory.string();
  if (const auto holder = store::ExperimentLock::holder(directory))
    throw InvalidArgument(subject + " is being run already, by " + *holder + ": give this one another name");
  if (holds_store(directory))
    throw InvalidArgument(subject + " exists already: continue it with " + tenant.restore +
                          ", or give this one another name");
  if (fs::exists(directory) && !(fs::is_directory(directory) && holds_beginnings_only(directory)))
    throw InvalidArgument(directory.string() + " exists and is not " + tenant.a + ": give this one another name");
  base::make_directories(directory);
}

void remove_with_store(const fs::path& directory) {
  for (const std::string& name : base::list_directory(directory)) {
    if (name != store::kStoreFileName) base::remove_tree(directory / name);
  }
  base::remove_tree(directory);
}

}  // namespace cadre::run
