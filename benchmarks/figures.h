// The output of a workload: one JSON object per line.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cadre/value.h"
#include "process.h"

namespace cadre::bench {

// The limit for a figure.
struct Budget {
  enum class Kind { at_most, at_least };
  Kind kind = Kind::at_most;
  double limit = 0;

  static Budget at_most(double limit) { return {Kind::at_most, limit}; }
  static Budget at_least(double limit) { return {Kind::at_least, limit}; }
  bool is_met_by(double value) const { return kind == Kind::at_most ? value <= limit : value >= limit; }
};

// One row of the table that `make bench` prints.
struct Figure {
  std::string name;  // for display
  double value = 0;
  std::string unit;
  std::optional<Budget> budget = {};
  std::optional<double> ratio = {};  // to the plain operation; empty: none
};

// Returns the figures as a list: {"figure", "value", "unit"}, with "ratio", and "budget", "limit" ("at most" or "at
// least") and "met", if present.
Value to_value(const std::vector<Figure>& figures);

// Prints {"workload": name, "torch": bool, <settings>, "wall_s", "cpu_s", <facts>, "figures"} as one line.
void print_line(const std::string& workload, const Dict& settings, double wall_s, double cpu_s, const Dict& facts,
                const std::vector<Figure>& figures);

}  // namespace cadre::bench
