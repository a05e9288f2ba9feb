#include "worker/host.h"

#include <string>

namespace cadre {

bool Host::print(std::string_view, bool) { return false; }

namespace worker {
namespace {

constexpr const char* kNoHost = "is a function of a host, such as a Python program, and this program has none";

Host* current_host = nullptr;

}  // namespace

void set_host(Host* host) { current_host = host; }

Host* find_host() { return current_host; }

Host& host_of(std::string_view function_name) {
  if (current_host != nullptr) return *current_host;
  throw InvalidArgument("\"" + std::string(function_name) + "\" " + kNoHost);
}

void check_host(const std::string& function_name, const std::string& option, Faults& faults) {
  faults.unless(current_host != nullptr, option, "\"" + function_name + "\" " + kNoHost);
}

}  // namespace worker
}  // namespace cadre
