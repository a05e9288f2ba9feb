#include "figures.h"

#include <iostream>

#include "base/json.h"
#include "learner.h"

namespace cadre::bench {

Value to_value(const std::vector<Figure>& figures) {
  List list;
  for (const Figure& figure : figures) {
    Dict entry{{"figure", figure.name}, {"value", figure.value}, {"unit", figure.unit}};
    if (figure.ratio) entry.emplace_back("ratio", *figure.ratio);
    if (figure.budget) {
      entry.emplace_back("budget", figure.budget->limit);
      entry.emplace_back("limit", figure.budget->kind == Budget::Kind::at_most ? "at most" : "at least");
      entry.emplace_back("met", figure.budget->is_met_by(figure.value));
    }
    list.emplace_back(std::move(entry));
  }
  return list;
}

void print_line(const std::string& workload, const Dict& settings, double wall_s, double cpu_s, const Dict& facts,
                const std::vector<Figure>& figures) {
  Dict line{{"workload", workload}, {"torch", with_torch()}};
  line.insert(line.end(), settings.begin(), settings.end());
  line.emplace_back("wall_s", wall_s);
  line.emplace_back("cpu_s", cpu_s);
  line.insert(line.end(), facts.begin(), facts.end());
  line.emplace_back("figures", to_value(figures));
  std::cout << base::to_json(line) << std::endl;
}

}  // namespace cadre::bench
