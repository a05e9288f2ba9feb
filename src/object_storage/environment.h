// Environment variables, where each service's own tools look for credentials.
#pragma once

#include <cstdlib>
#include <string>

namespace cadre::storage {

// Returns an environment variable; empty if it is not set.
inline std::string environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace cadre::storage
