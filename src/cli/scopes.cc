#include "cli/scopes.h"

#include <map>

namespace cadre::cli {
namespace {

using tune::Scope;

const std::map<std::string, Scope> kScopes{{"last", Scope::last},
                                           {"avg", Scope::avg},
                                           {"min", Scope::min},
                                           {"max", Scope::max},
                                           {"last-5-avg", Scope::last_5_avg},
                                           {"last-10-avg", Scope::last_10_avg}};

}  // namespace

void add_scope(Command& command, std::string* name, const std::string& description) {
  std::vector<std::string> names;
  for (const auto& [one, scope] : kScopes) names.push_back(one);
  command.option("--scope", name, description + " [last]; see below").one_of(names).named("SCOPE");
}

tune::Scope scope_of(const std::string& name) { return kScopes.at(name); }

}  // namespace cadre::cli
