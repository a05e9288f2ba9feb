#include "control/event_rows.h"

#include <cctype>

namespace cadre::control {

std::string kind_of_type(std::string_view type_name) {
  std::string kind;
  for (const char letter : type_name) {
    const bool is_capital = std::isupper(static_cast<unsigned char>(letter)) != 0;
    if (is_capital && !kind.empty()) kind += '_';
    kind += is_capital ? static_cast<char>(std::tolower(static_cast<unsigned char>(letter))) : letter;
  }
  return kind;
}

}  // namespace cadre::control
