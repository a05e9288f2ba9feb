// Paths from untrusted sources: a store, a list or a manifest may have been written by another program. No such path
// may leave its directory, neither by its text nor by links along it.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/file_descriptor.h"

namespace cadre::base {

// A path inside a directory: relative, normalised, with at least one name, and without "." or "..".
class InnerPath {
 public:
  // Throws StorageError that names `source`, which contains the path.
  InnerPath(std::string_view path, std::string_view source);

  const std::string& text() const { return text_; }
  // Returns the path below a directory; for messages, and for directories that only Cadre writes to.
  friend std::filesystem::path operator/(const std::filesystem::path& root, const InnerPath& path) {
    return root / path.text_;
  }

 private:
  std::string text_;
};

inline std::string stored_form(const InnerPath& path) { return path.text(); }

// Returns why a path leads out of a directory or is not in Cadre's normal form; empty if it is valid.
std::string fault_of_inner_path(std::string_view path);

// Opens a file below a directory, with open(2)'s flags; returns an empty descriptor if the file does not exist. A
// link anywhere in the path is an error. Throws StorageError.
FileDescriptor open_inside(const std::filesystem::path& root, const InnerPath& path, int flags);
// Removes a file, or a directory with its content; does nothing if the path does not exist. Follows no links, neither
// in the path nor below it. Throws StorageError.
void remove_inside(const std::filesystem::path& root, const InnerPath& path);

// Renames a file or directory below a directory; returns false if it does not exist. Follows no links in either path.
// Throws StorageError.
bool rename_inside(const std::filesystem::path& root, const InnerPath& from, const InnerPath& to);

}  // namespace cadre::base
