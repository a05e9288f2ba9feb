#include "cadre/faults.h"

#include "base/display_text.h"
#include "cadre/error.h"

namespace cadre {

void Faults::throw_if_any(const std::string& subject) const { throw_as(subject + " cannot be run"); }

void Faults::throw_as(const std::string& message) const {
  if (empty()) return;
  std::string text;
  for (const auto& [option, what] : faults_)
    text += "\n  " + base::printable(option + ": " + what, base::Encoding::utf8);
  throw InvalidArgument(message + ":" + text);
}

}  // namespace cadre
