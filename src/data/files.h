// The files that paths, folders, patterns and URIs refer to.
#pragma once

#include <arrow/filesystem/filesystem.h>
#include <arrow/io/interfaces.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/plan.h"

namespace cadre::data {

struct Place {
  std::shared_ptr<arrow::fs::FileSystem> file_system;
  std::string path = {};    // in the file system
  std::string prefix = {};  // for messages: "s3://"
  bool is_remote = false;
};
// Resolves a path or a URI. Throws InvalidArgument for a URI that cannot be used.
Place place_of(const std::string& path);

struct InputFile {
  std::shared_ptr<arrow::fs::FileSystem> file_system;
  std::string path = {};   // in the file system
  std::string shown = {};  // for messages
  std::string asked = {};  // path below the requested folder; the whole path if the file itself was requested
  std::int64_t size = 0;   // bytes
  bool is_remote = false;  // a request costs more than the bytes of a page

  std::shared_ptr<arrow::io::RandomAccessFile> open() const;
  // Opens it to be read from its beginning; decompressed if its name has the ending of a compression.
  std::shared_ptr<arrow::io::InputStream> open_stream() const;
  bool is_compressed() const;  // by its name
};

// Returns the next bytes of a stream, fewer at its end. Many are read in parts, so that a wrong number in a file takes
// no memory. `doing` begins the error.
std::shared_ptr<arrow::Buffer> read_up_to(arrow::io::InputStream& stream, std::int64_t bytes, const std::string& doing);

// Returns the form of a path in a plan: absolute, or a URI. Throws InvalidArgument for a URI that cannot be used.
std::string to_plan_path(const std::string& path);

// Returns all files in the order of the paths, and by name in each; from folders the files with one of these endings.
// Throws NotFound if a path leads to no file.
std::vector<InputFile> find_files(const Names& paths, const std::vector<std::string_view>& endings);
// Returns the files of a read, in the same way. Throws NotFound if there is none.
std::vector<InputFile> find_files(const ReadFiles& read);
// Returns true if the name of a file or folder is a hidden one, which readers ignore.
bool is_hidden(std::string_view name);
// Returns the endings of the files that a format reads from folders.
std::vector<std::string_view> endings_of(ReadFiles::Format format);

}  // namespace cadre::data
