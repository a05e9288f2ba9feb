// Lines of Ray's launcher, and options of requests to it. Options without a fault make a line that can be read.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/json.h"
#include "cadre/error.h"
#include "engine/cluster/ray.h"
#include "fuzz/require.h"

using namespace cadre::engine::cluster;  // NOLINT(google-build-using-namespace)

namespace {

void check_options(std::string_view text) {
  NodeRequest request;
  for (const char* const name : {"accelerator_type", "address", "memory", "python", "resources", "strategy"}) {
    const std::size_t end = text.find('\1');
    if (end != 0) request.options[name] = text.substr(0, end);
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
  }
  if (!ray::faults_of(request).empty()) return;
  const std::string line = ray::request_line(request, {0}, {}, {});
  cadre::fuzz::require(line.find('\n') == line.size() - 1, "a request is not one line");
  cadre::base::parse_json(line, "a request");
}

void check_line(std::string_view line) {
  const std::chrono::steady_clock::time_point now{std::chrono::hours(24 * 365 * 20)};
  const ray::Said said = ray::parse_said(line, now);
  const auto* const ends = std::get_if<NodeEnds>(&said);
  cadre::fuzz::require(ends == nullptr || !ends->at || *ends->at >= now, "a node is to end before now");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  try {
    data[0] % 2 == 0 ? check_line(text) : check_options(text);
  } catch (const cadre::Error&) {
    cadre::fuzz::require(data[0] % 2 == 0, "a request without faults throws");
  }
  return 0;
}
