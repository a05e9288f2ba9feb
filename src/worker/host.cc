#include "worker/host.h"

#include <string>

namespace cadre::worker {
namespace {

Host* current_host = nullptr;

}  // namespace

void set_host(Host* host) { current_host = host; }

Host* find_host() { return current_host; }

Host& host_of(std::string_view function_name) {
  if (current_host != nullptr) return *current_host;
  throw InvalidArgument("\"" + std::string(function_name) +
                        "\" is a function of a host, such as a Python program, and this program has none");
}

}  // namespace cadre::worker
