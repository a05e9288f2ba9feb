// Entries of a search space as they are written on the command line and in the file of `cadre tune`.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "cadre/tune/search_space.h"

namespace cadre::cli {

// Returns the key and the entry of "lr=loguniform(1e-5, 1)" or "epochs=10": one of the functions of
// cadre/tune/search_space.h, with its arguments as JSON, or a constant as JSON. Throws InvalidArgument.
std::pair<std::string, tune::SpaceEntry> parse_parameter(const std::string& text);

// Parses the arguments of a domain, without their brackets. Throws InvalidArgument.
using ParseArguments = std::function<List(const std::string& text)>;

// Returns the entry of "loguniform(1e-5, 1)", and any other text as a constant; `key` is for messages. Throws
// InvalidArgument.
tune::SpaceEntry parse_entry(const std::string& key, const std::string& text, const ParseArguments& parse_arguments);

}  // namespace cadre::cli
