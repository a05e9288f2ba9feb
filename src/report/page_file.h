// The files of the page, built into the program from web/.
#pragma once

#include <span>
#include <string_view>

namespace cadre::report {

struct PageFile {
  std::string_view path;  // in web/: "index.html"
  std::string_view text;
};

// Returns all of them. Generated from the files by cmake/EmbedFiles.cmake.
std::span<const PageFile> page_files();

}  // namespace cadre::report
