// What a config is drawn from: domains, constants and nested spaces.
#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "cadre/value.h"

namespace cadre::tune {

// A real number from [lower, upper), every number equally likely.
struct Uniform {
  double lower = 0;
  double upper = 1;
  bool operator==(const Uniform&) const = default;
};
// A real number from [lower, upper), its logarithm uniform; 0 < lower.
struct LogUniform {
  double lower = 0;
  double upper = 1;
  bool operator==(const LogUniform&) const = default;
};
// An integer from lower to upper - 1, each equally likely.
struct RandInt {
  std::int64_t lower = 0;
  std::int64_t upper = 1;
  bool operator==(const RandInt&) const = default;
};
// One of the options, each equally likely.
struct Choice {
  List options;
  bool operator==(const Choice&) const = default;
};
using Domain = std::variant<Uniform, LogUniform, RandInt, Choice>;

// The names that a search space is written with. They check nothing: the Tuner names every fault with its key.
// Source of names and meaning: Ray Tune's search-space API.
inline Domain uniform(double lower, double upper) { return Uniform{lower, upper}; }
inline Domain loguniform(double lower, double upper) { return LogUniform{lower, upper}; }
inline Domain randint(std::int64_t lower, std::int64_t upper) { return RandInt{lower, upper}; }
inline Domain choice(std::initializer_list<Value> options) { return Choice{List(options)}; }
inline Domain choice(List options) { return Choice{std::move(options)}; }

class SpaceEntry;
// Names and what each is drawn from, in the order in which they are drawn and shown.
using Space = std::vector<std::pair<std::string, SpaceEntry>>;

// A domain, a constant, or a nested space: {{"lr", uniform(0, 1)}, {"epochs", 5}, {"model", {{"width", choice({1,
// 2})}}}}
class SpaceEntry {
 public:
  using Data = std::variant<Domain, Value, std::shared_ptr<const Space>>;

  SpaceEntry(Domain domain) : data_(std::move(domain)) {}
  template <class T>
    requires std::constructible_from<Value, T&&>
  SpaceEntry(T&& constant) : data_(Value(std::forward<T>(constant))) {}
  SpaceEntry(std::initializer_list<std::pair<std::string, SpaceEntry>> nested);
  SpaceEntry(Space nested);

  const Data& data() const { return data_; }

 private:
  Data data_;
};

inline SpaceEntry::SpaceEntry(std::initializer_list<std::pair<std::string, SpaceEntry>> nested)
    : data_(std::make_shared<const Space>(nested)) {}
inline SpaceEntry::SpaceEntry(Space nested) : data_(std::make_shared<const Space>(std::move(nested))) {}

}  // namespace cadre::tune
