// The option --scope: which results speak for a trial.
#pragma once

#include <string>

#include "cadre/tune/result.h"
#include "cli/command_line.h"

namespace cadre::cli {

// Adds the option, which reads one of the names into `name`. The help needs kScopesFooter.
void add_scope(Command& command, std::string* name, const std::string& description = "What speaks for a trial");
// Returns the scope of one of the names: "last", "avg", "min", "max", "last-5-avg", "last-10-avg".
tune::Scope scope_of(const std::string& name);

inline constexpr char kScopesFooter[] = "Scopes: last, avg, min, max, last-5-avg and last-10-avg of a trial's results.";

}  // namespace cadre::cli
