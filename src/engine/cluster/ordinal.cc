#include "engine/cluster/ordinal.h"

#include <charconv>
#include <cstdlib>
#include <string_view>

namespace cadre::engine::cluster {

std::optional<std::int64_t> agent_ordinal() {
  const char* const variable = std::getenv(kOrdinalVariable);
  if (variable == nullptr) return std::nullopt;
  const std::string_view text = variable;
  std::int64_t ordinal = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), ordinal);
  if (fault != std::errc() || end != text.data() + text.size() || ordinal < 0) return std::nullopt;
  return ordinal;
}

}  // namespace cadre::engine::cluster
