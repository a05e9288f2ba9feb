// A file that a user has named for results of a command.
#pragma once

#include <filesystem>
#include <string_view>

namespace cadre::base {

// Makes a file beside the named one, with the same permissions, which keeps its content until finish() replaces it. A
// link, a pipe or a device, such as /dev/stdout, is written to as it is.
class OutputFile {
 public:
  // Throws StorageError.
  explicit OutputFile(std::filesystem::path named);
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  // Removes the file beside the named one, unless finish() was called.
  ~OutputFile();

  // Returns the path to write to.
  const std::filesystem::path& path() const { return written_; }
  // Replaces the named file by what was written, which must be closed. Throws StorageError.
  void finish();

 private:
  std::filesystem::path named_;
  std::filesystem::path written_;
  bool is_finished_ = false;
};

// Writes all of such a file. Throws StorageError.
void write_output_file(const std::filesystem::path& named, std::string_view bytes);

}  // namespace cadre::base
