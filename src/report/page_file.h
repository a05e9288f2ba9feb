// The files of the report's page, built into the program from web/.
#pragma once

#include <span>
#include <string_view>

namespace cadre::report {

struct PageFile {
  std::string_view path;  // in web/: "index.html"
  std::string_view text;
};

// Returns all files. cmake/EmbedFiles.cmake generates the definition.
std::span<const PageFile> page_files();

}  // namespace cadre::report
