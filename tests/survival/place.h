// The files of a run: in a directory, and in a storage.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

namespace cadre::survival {

// Returns the URI of a folder where runs are published; an empty function: they are not.
using StorageFolder = std::function<std::string()>;
// Returns a folder of files below a directory.
StorageFolder folder_of_files(const std::filesystem::path& directory);

struct Place {
  std::filesystem::path directory;  // the run's files; working directory of a published run
  std::filesystem::path home;       // home of the machine that runs it
  std::string uri = {};             // where it is published; empty: nowhere
  std::filesystem::path said;       // output of its controllers

  // Returns the path or URI that controllers are called with.
  std::string name() const { return uri.empty() ? directory.string() : uri; }
};

// Makes the place of a new run with that name below a folder.
Place make_place(const std::filesystem::path& folder, const std::string& name, const StorageFolder& storage);
// Removes all files, wherever they are.
void remove(const Place& place);
// Leaves only what is published, as if the machine were lost.
void lose_the_local_disk(const Place& place);

}  // namespace cadre::survival
