// Uses the storage where the run is published, for an agent, in threads: tries it, stores what workers report, and
// loads what they need.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <variant>
#include <vector>

#include "engine/cluster/messages.h"

namespace cadre::engine::cluster {

class AgentStorage {
 public:
  // `wake` is called in these threads when take_done() has something. Loads the library for the storage, in the calling
  // thread, which is the main thread, and begins to try the storage.
  AgentStorage(const UseStorage& use, std::filesystem::path directory, std::function<void()> wake);
  // Gives up what is not done, but does not wait for a request that the storage does not answer. `wake` is not called
  // any more.
  ~AgentStorage();
  AgentStorage(const AgentStorage&) = delete;
  AgentStorage& operator=(const AgentStorage&) = delete;

  void store(const StoreFiles& store);
  void load(const LoadFiles& load);

  using Done = std::variant<TriedStorage, FilesStored, FilesLoaded>;
  std::vector<Done> take_done();

 private:
  struct Shared;

  std::shared_ptr<Shared> shared_;  // with the threads, which may outlive this object
};

}  // namespace cadre::engine::cluster
