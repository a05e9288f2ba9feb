// Puts pages together from index.html, of which each line is for every page, or names those that it is for:
// "<!-- for list experiment -->" at its end.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cadre/value.h"
#include "report/page_file.h"

namespace cadre::report {

// Returns the page of a report: one HTML document that needs no other file, with the style sheets, scripts and
// documents in their places. Throws NotFound if it names a file that is not among them.
std::string page_of(const std::vector<Value>& documents, const std::string& title,
                    std::span<const PageFile> files = page_files());

// Returns a page that loads its style sheets and scripts: the lines for every page and for one of `names`.
std::string served_page(std::span<const std::string_view> names, const std::string& title,
                        std::span<const PageFile> files = page_files());

}  // namespace cadre::report
