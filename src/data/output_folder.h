// A folder for output files, on this machine or in a storage.
#pragma once

#include <arrow/io/interfaces.h>

#include <memory>
#include <string>
#include <vector>

#include "data/files.h"

namespace cadre::data {

// Files become visible only when complete. On this machine their names begin with '.' until publish(); in a storage
// they appear when their stream is closed, and not if it is aborted.
class OutputFolder {
 public:
  // Opens a path or URI; creates a folder of this machine. Throws InvalidArgument for a URI that cannot be used.
  explicit OutputFolder(const std::string& path);

  // Returns the names of the files in it, without hidden ones.
  std::vector<std::string> list() const;
  std::shared_ptr<arrow::io::OutputStream> create(const std::string& name) const;
  // Gives a file whose stream has been closed its final name.
  void publish(const std::string& name) const;
  // Removes a created file, published or not. Ignores errors.
  void remove(const std::string& name) const;

  // Returns the path or URI of a file, for readers.
  std::string path_of(const std::string& name) const;
  // Returns the path for messages.
  std::string shown(const std::string& name = "") const;

 private:
  // Returns the path of a file while it is being written.
  std::string place_of(const std::string& name) const;

  std::string given_;
  Place place_;
};

}  // namespace cadre::data
