// Variables of the environment, where each service's own tools look for credentials.
#pragma once

#include <cstdlib>
#include <string>

namespace cadre::storage {

// Empty where there is none.
inline std::string environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace cadre::storage
