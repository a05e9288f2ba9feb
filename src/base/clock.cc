#include "base/clock.h"

#include <chrono>
#include <ctime>

namespace cadre::base {

double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string date_text(double seconds_since_1970) {
  const auto seconds = static_cast<std::time_t>(seconds_since_1970);
  std::tm local{};
  localtime_r(&seconds, &local);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%d_%H-%M-%S", &local)};
}

}  // namespace cadre::base
