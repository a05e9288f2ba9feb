// Puts the page of a report together.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cadre/value.h"
#include "report/page_file.h"

namespace cadre::report {

// Returns one HTML document that needs no other file: index.html with the style sheets, scripts and documents that it
// names in their places. Throws NotFound if it names a file that is not among them.
std::string page_of(const std::vector<Value>& documents, const std::string& title,
                    std::span<const PageFile> files = page_files());

}  // namespace cadre::report
