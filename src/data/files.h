// The files that paths, folders, patterns and URIs lead to.
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
  std::string path = {};    // there
  std::string prefix = {};  // of what is shown: "s3://"
  bool is_remote = false;
};
// Of a path or a URI. Throws InvalidArgument for a URI that cannot be used.
Place place_of(const std::string& path);

struct InputFile {
  std::shared_ptr<arrow::fs::FileSystem> file_system;
  std::string path = {};   // there
  std::string shown = {};  // for people
  std::string asked = {};  // its path below what was asked for; of a file that was, its whole path
  std::int64_t size = 0;   // bytes
  bool is_remote = false;  // a request costs more than the bytes of a page

  std::shared_ptr<arrow::io::RandomAccessFile> open() const;
};

// A path as a plan keeps it: absolute, or a URI. Throws InvalidArgument for a URI that cannot be used.
std::string to_plan_path(const std::string& path);

// All files, in the order of the paths and in each by name. Of folders those with one of these endings. Throws NotFound
// where a path leads to none.
std::vector<InputFile> find_files(const Names& paths, const std::vector<std::string_view>& endings);
// Whether the name of a file or folder says that readers are to leave it out.
bool is_hidden(std::string_view name);
// Those that a format takes from folders.
std::vector<std::string_view> endings_of(ReadFiles::Format format);

}  // namespace cadre::data
