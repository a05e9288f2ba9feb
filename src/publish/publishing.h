// Publishing of an experiment or a training run, from the controller's point of view. Does nothing if it is not
// published. All functions are for the controller's thread and return at once, except finish().
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "publish/place.h"
#include "publish/publisher.h"

namespace cadre::publish {

class Publishing {
 public:
  struct Setting {
    std::filesystem::path directory;  // the working directory
    PublishConfig config = {};
    std::optional<Publication> publication = {};       // empty: not published
    std::function<void()> wake = [] {};                // called from other threads when tick() has something to do
    std::function<void(const std::string&)> say = {};  // prints one line for the user
  };
  explicit Publishing(Setting setting) : setting_(std::move(setting)) {}

  // Call before the first worker starts, if workers write to the storage themselves; `is_work_place`: they
  // work there, too. Blocks until the storage has listed its files. Throws StorageFault.
  void find_leftovers(bool is_work_place);
  // Starts publishing; call when the rows of ended trials no longer change. `anew`: the store does not continue what
  // is published.
  void begin(bool anew);
  // Prints messages and triggers evictions; call once a turn. `needed`, called after new states were published,
  // returns the directories of checkpoints, relative to the working directory, that must stay on the local disk.
  // Throws StorageError if another controller has taken over.
  void tick(const std::function<std::set<std::string>()>& needed);
  // Waits until everything is published, for at most PublishConfig::patience and until `give_up` returns true, and
  // prints the outcome; call at the end, when store and files are final. Then removes the local files of all published
  // checkpoints except `needed`. Throws StorageError if another controller has taken over.
  void finish(const std::function<bool()>& give_up, const std::set<std::string>& needed);

  // Call those of the Publisher; what is not published at all is as good as published.
  std::int64_t publish_now() { return publisher_ ? publisher_->publish_now() : 0; }
  bool is_published(std::int64_t number) const { return !publisher_ || publisher_->is_published(number); }

  // Calls Publisher::takes_over_removal(); false for an absolute path, which is a directory of the user's.
  bool takes_over_removal(const std::filesystem::path& directory);
  std::vector<std::string> removals() const { return publisher_ ? publisher_->removals() : std::vector<std::string>(); }

 private:
  void require_lease() const;

  Setting setting_;
  std::optional<std::set<std::string>> leftovers_ = {};
  bool is_work_place_ = false;
  std::unique_ptr<Publisher> publisher_ = {};
};

// Returns a line with the URI of the run and the previous holder of the lease.
std::string description_of(const Publication& publication, const PublishConfig& config);

}  // namespace cadre::publish
