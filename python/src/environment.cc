#include "environment.h"

#include <unistd.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace nb = nanobind;

namespace cadre::python {
namespace {

struct Variable {
  const char* entry;  // "name=value", and another one once it is set again
  std::string name;
};

std::vector<Variable> variables() {
  std::vector<Variable> found;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (text.find('=') != text.npos) found.push_back({*entry, std::string(text.substr(0, text.find('=')))});
  }
  return found;
}

std::vector<Variable> known;  // in the last call

nb::bytes to_bytes(std::string_view text) { return nb::bytes(text.data(), text.size()); }

nb::dict changed_environment() {
  nb::dict changed;
  std::vector<Variable> now = variables();
  for (const Variable& before : known) {
    if (std::ranges::find(now, before.name, &Variable::name) == now.end()) changed[to_bytes(before.name)] = nb::none();
  }
  for (const Variable& variable : now) {
    if (std::ranges::find(known, variable.entry, &Variable::entry) == known.end())
      changed[to_bytes(variable.name)] = to_bytes(variable.entry + variable.name.size() + 1);
  }
  known = std::move(now);
  return changed;
}

}  // namespace

void bind_environment(nb::module_& module) {
  known = variables();
  module.def("changed_environment", &changed_environment);
}

}  // namespace cadre::python
