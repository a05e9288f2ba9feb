// The file of a study, so that it outlives the processes that use it. docs/formats.md describes it.
#pragma once

#include <filesystem>
#include <vector>

#include "base/file_descriptor.h"
#include "cadre/value.h"

namespace cadre::tune {

// A text file with a JSON document a line, of which this process is the only user. Errors are StorageError.
class StudyFile {
 public:
  // Returns true if the directory holds a study.
  static bool exists(const std::filesystem::path& directory);

  // Opens the file in a directory, or creates both. Waits while another process has it open, at most a minute.
  explicit StudyFile(const std::filesystem::path& directory);

  // Returns the documents of the file. A last line that was not written to its end is removed from it.
  std::vector<Value> read();
  // Adds a document. It is on the disk afterwards; after an error the file is as before.
  void append(const Dict& document);
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  base::FileDescriptor file_;
  std::uintmax_t size_ = 0;  // bytes
};

}  // namespace cadre::tune
