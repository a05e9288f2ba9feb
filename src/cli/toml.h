// TOML documents as Values, whose lines can be named in messages.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <string>

#include "cadre/value.h"

namespace cadre::cli {

// Returns the value that a text is in TOML; one that is none is text.
Value toml_value(const std::string& text);

class TomlDocument {
 public:
  // Parses a text; `name` is that of the file, for messages. Throws InvalidArgument that names the line.
  TomlDocument(const std::string& text, std::string name);

  // Keys are in the order of the text. Dates and times are text.
  const Dict& entries() const { return entries_; }
  // Sets an entry "a.b.c=value"; a value that is no TOML is text. Throws InvalidArgument.
  void change(const std::string& text);
  // Returns "tune.toml, line 3" for the path of an entry, "scheduler/max_t", or the nearest one around it.
  std::string place(std::string path) const;

 private:
  std::string name_;
  Dict entries_;
  std::map<std::string, std::string> places_;  // by path
};

}  // namespace cadre::cli
