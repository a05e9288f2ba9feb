#include "store/run_directory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "base/clock.h"
#include "base/directory.h"
#include "cadre/error.h"
#include "storage/remote_directory.h"
#include "store/experiment_lock.h"
#include "store/experiment_store.h"
#include "store/object_files.h"
#include "store/read_store.h"

namespace cadre::store {
namespace fs = std::filesystem;
namespace {

// Returns true if a directory is empty, or has only files of a controller that was killed before it created a store.
bool holds_beginnings_only(const fs::path& directory) {
  const std::string half_written = std::string(storage::kPublishedToFile) + ".tmp";
  return std::ranges::all_of(base::list_directory(directory), [&](const std::string& name) {
    return name == ExperimentLock::kFileName || name == kObjectsDirectory || name == storage::kPublishedToFile ||
           name == half_written || name.starts_with(ExperimentStore::kUnfinishedName);
  });
}

}  // namespace

fs::path default_storage_path() {
  const char* home = std::getenv("HOME");
  if (home == nullptr || *home == '\0')
    throw NotFound("there is no HOME for the default directory of experiments, ~/cadre_results: name another one");
  return fs::path(home) / "cadre_results";
}

std::string default_name(const std::string& function) { return function + "_" + base::date_text(base::wall_seconds()); }

std::string exists_already(const std::string& subject, const std::string& restore) {
  return fmt::format(
      "{} exists already. RunConfig::if_exists says what a start does then: IfExists::restore continues it, as {} "
      "does; "
      "IfExists::new_name makes another one beside it; IfExists::fail, the default, is this error. Or give this one "
      "another name",
      subject, restore);
}

std::string how_to_continue(IfExists if_exists, const std::string& restore, const fs::path& directory) {
  if (if_exists == IfExists::restore) return "The same program continues it when it is started again";
  return fmt::format("Continue it with {} from {}, or with RunConfig::if_exists = IfExists::restore", restore,
                     directory.string());
}

void make_new_directory(const fs::path& directory, const Tenant& tenant) {
  const std::string subject = "the " + tenant.what + " " + directory.string();
  if (const auto holder = ExperimentLock::holder(directory))
    throw InvalidArgument(subject + " is being run already, by " + *holder + ": give this one another name");
  if (has_store(directory)) throw InvalidArgument(exists_already(subject, tenant.restore));
  if (fs::exists(directory) && !(fs::is_directory(directory) && holds_beginnings_only(directory)))
    throw InvalidArgument(directory.string() + " exists and is not " + tenant.a + ": give this one another name");
  base::make_directories_durably(directory.parent_path());  // its own name is synced together with its store's
  base::make_directories(directory);
}

fs::path make_free_directory(const fs::path& folder, const std::string& name,
                             const std::function<bool(const std::string&)>& is_taken) {
  base::make_directories_durably(folder);
  for (int i = 1;; ++i) {
    const std::string candidate = i == 1 ? name : fmt::format("{}_{}", name, i);
    if (!is_taken(candidate) && base::make_directory(folder / candidate)) return folder / candidate;
  }
}

void remove_with_store(const fs::path& directory) {
  for (const std::string& name : base::list_directory(directory)) {
    if (name != kStoreFileName) base::remove_tree(directory / name);
  }
  base::remove_tree(directory);
}

}  // namespace cadre::store
