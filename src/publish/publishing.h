// What a controller does about publishing: of an experiment or a training run, which may be published nowhere.
// Everything here is the controller's thread's, and returns at once but for finish().
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
    std::optional<Publication> publication = {};       // empty: nothing happens here
    std::function<void()> wake = [] {};                // called in other threads when tick() has something to do
    std::function<void(const std::string&)> say = {};  // a line for a person
  };
  explicit Publishing(Setting setting) : setting_(std::move(setting)) {}

  // When all trials that have ended will stay as they are. `anew`: the store is no continuation of what is published.
  void begin(bool anew);
  // Once a turn. `needed` is asked from time to time which checkpoints' directories, by their paths below the working
  // directory, must stay on the local disk. Throws StorageError when another controller has taken over.
  void tick(const std::function<std::set<std::string>()>& needed);
  // At the end, when the store and the files are as they are to be. Waits until everything is published, as long as the
  // PublishConfig says and `give_up` does not hold, and says what came of it. Of what is published then only these
  // checkpoints stay on the local disk. Throws StorageError when another controller has taken over.
  void finish(const std::function<bool()>& give_up, std::set<std::string> needed);

  // See Publisher. It takes over none that is absolute: a directory of the user's.
  bool takes_over_removal(const std::filesystem::path& directory);
  std::vector<std::string> removals() const { return publisher_ ? publisher_->removals() : std::vector<std::string>(); }

 private:
  void require_lease() const;

  Setting setting_;
  std::unique_ptr<Publisher> publisher_ = {};
};

// Says where it is published, and who was there before.
std::string description_of(const Publication& publication, const PublishConfig& config);

}  // namespace cadre::publish
