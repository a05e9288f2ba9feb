// Paths that came from outside: from a store, a list or a manifest that somebody else may have written. None of them
// leads out of the directory that it is meant below, neither by its text nor by links that lie on its way.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/file_descriptor.h"

namespace cadre::base {

// A path inside a directory: relative, normal, of at least one name, none of them "." or "..".
class InnerPath {
 public:
  // Throws StorageError that names `source`, which has it.
  InnerPath(std::string_view path, std::string_view source);

  const std::string& text() const { return text_; }
  // Returns where it is below a directory; for messages, and where nobody else writes to that.
  friend std::filesystem::path operator/(const std::filesystem::path& root, const InnerPath& path) {
    return root / path.text_;
  }

 private:
  std::string text_;
};

// Says why a path leads out of a directory, or is written otherwise than Cadre writes it; empty where all is well.
std::string fault_of_inner_path(std::string_view path);

// Opens a file below a directory, with open(2)'s flags. Follows no link: one on the way is an error. Empty where there
// is no such file. Throws StorageError.
FileDescriptor open_inside(const std::filesystem::path& root, const InnerPath& path, int flags);
// Removes a file, or a directory with its content. Nothing happens where there is none. Follows no link, on the way and
// below. Throws StorageError.
void remove_inside(const std::filesystem::path& root, const InnerPath& path);

// Renames a file or a directory below a directory. False where there is none. Follows no link on either way. Throws
// StorageError.
bool rename_inside(const std::filesystem::path& root, const InnerPath& from, const InnerPath& to);

}  // namespace cadre::base
