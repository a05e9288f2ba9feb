// The files of a run: in a directory, and in a storage.
#pragma once

#include <filesystem>
#include <string>

namespace cadre::survival {

struct Place {
  std::filesystem::path directory;  // with the run's files; a published one's is its working directory
  std::filesystem::path home;       // of the machine that runs it
  std::string uri = {};             // where it is published; empty: nowhere
  std::filesystem::path said;       // what its controllers say

  // Returns the path or URI that controllers are called with.
  std::string name() const { return uri.empty() ? directory.string() : uri; }
};

// Makes the place of a new run with that name below a folder.
Place make_place(const std::filesystem::path& folder, const std::string& name, bool is_published);
// Removes all files, wherever they are.
void remove(const Place& place);
// Leaves only what is published, as when its machine is lost.
void lose_the_local_disk(const Place& place);

}  // namespace cadre::survival
