#include "worker/reporting.h"

#include <fmt/format.h>

#include <cstdio>
#include <utility>

#include "cadre/error.h"

namespace cadre::worker {
namespace {

std::string_view current_way;

}  // namespace

Reporting::Reporting(std::string_view way) { current_way = way; }

Reporting::~Reporting() { current_way = {}; }

void report_nowhere(std::string_view function) {
  if (!current_way.empty())
    throw Error(fmt::format("{} records nothing here: this worker reports with {}", function, current_way));
  static bool warned = false;
  if (std::exchange(warned, true)) return;
  fmt::print(stderr, "cadre: {} was called outside a worker; results go nowhere\n", function);
}

}  // namespace cadre::worker
