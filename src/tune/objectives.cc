#include "cadre/tune/objectives.h"

#include <optional>
#include <string>

namespace cadre {
namespace {

struct StoredObjective {
  std::string metric = {};
  std::optional<Mode> mode = {};
};

}  // namespace

Value stored_form(const std::vector<Objective>& metrics) {
  List items;
  for (const Objective& metric : metrics) items.push_back(to_stored(StoredObjective{metric.name, metric.mode}));
  return items;
}

void read_stored(std::vector<Objective>& metrics, const Stored& stored) {
  std::vector<StoredObjective> items;
  from_stored(items, stored);
  metrics.clear();
  for (const auto& [metric, mode] : items) metrics.emplace_back(metric, mode);
}

}  // namespace cadre
