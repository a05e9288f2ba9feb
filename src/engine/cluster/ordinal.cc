#include "engine/cluster/ordinal.h"

#include <charconv>
#include <cstdlib>
#include <string_view>

namespace cadre::engine::cluster {
namespace {

// Returns the number in an environment variable; empty if there is none.
template <class Number>
std::optional<Number> number_in(const char* name) {
  const char* const variable = std::getenv(name);
  if (variable == nullptr) return std::nullopt;
  const std::string_view text = variable;
  Number number{};
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (fault != std::errc() || end != text.data() + text.size() || number < 0) return std::nullopt;
  return number;
}

}  // namespace

std::optional<std::int64_t> agent_ordinal() { return number_in<std::int64_t>(kOrdinalVariable); }

std::optional<double> agent_cpus() {
  const std::optional<double> cpus = number_in<double>(kCpusVariable);
  return cpus && *cpus > 0 ? cpus : std::nullopt;
}

}  // namespace cadre::engine::cluster
