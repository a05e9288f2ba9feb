// A folder that files are written into: of this machine, or of a storage.
#pragma once

#include <arrow/io/interfaces.h>

#include <memory>
#include <string>
#include <vector>

#include "data/files.h"

namespace cadre::data {

// Files are seen by nobody before they are whole. Here they have other names until publish(), which begin with '.'; in
// a storage they are there when their stream has been closed, and not when it has been aborted.
class OutputFolder {
 public:
  // Of a path or URI. Makes a folder of this machine. Throws InvalidArgument for a URI that cannot be used.
  explicit OutputFolder(const std::string& path);

  // The names of the files in it, less the hidden ones.
  std::vector<std::string> list() const;
  std::shared_ptr<arrow::io::OutputStream> create(const std::string& name) const;
  // Gives a file its name, whose stream has been closed.
  void publish(const std::string& name) const;
  // A file that was created, published or not; as far as that is possible.
  void remove(const std::string& name) const;

  // Where a file is, for whoever reads it: a path or a URI.
  std::string path_of(const std::string& name) const;
  // For people.
  std::string shown(const std::string& name = "") const;

 private:
  // Where a file lies that is being written.
  std::string place_of(const std::string& name) const;

  std::string given_;
  Place place_;
};

}  // namespace cadre::data
