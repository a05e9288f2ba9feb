#include "publish/upload_directory.h"

#include <vector>

#include "checkpoint/checkpoint_files.h"
#include "storage/uploads.h"

namespace cadre::publish {

Dict upload_directory(storage::Storage& storage, const std::filesystem::path& directory, const std::string& name,
                      const std::atomic<bool>& stop) {
  std::vector<std::string> files;
  for (const auto& [file, listed] : checkpoint::list_files(directory)) files.push_back(file);
  return storage::upload_files(storage, directory, files, name, stop);
}

}  // namespace cadre::publish
