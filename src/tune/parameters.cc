#include "cadre/tune/parameters.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <variant>

#include "base/overload.h"
#include "cadre/error.h"
#include "tune/domain.h"

namespace cadre::tune {
namespace {

using base::Overload;

constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();

std::string join(const std::string& path, const std::string& key) { return path.empty() ? key : path + "/" + key; }

}  // namespace

// An entry of the space.
struct Parameters::Node {
  enum class Kind { constant, function, number, choice, list, dict };

  Kind kind = Kind::constant;
  Value constant = {};
  std::size_t parameter = 0;           // of a number or a choice
  std::vector<Node> nodes = {};        // options of a choice; items of a list or a dict
  std::vector<std::string> keys = {};  // of a dict's items

  bool has(bool (*is_one)(const Node&)) const {
    return is_one(*this) || std::ranges::any_of(nodes, [&](const Node& node) { return node.has(is_one); });
  }
  bool has_parameters() const {
    return has([](const Node& node) { return node.kind == Kind::number || node.kind == Kind::choice; });
  }
  bool has_functions() const {
    return has([](const Node& node) { return node.kind == Kind::function; });
  }

  // Returns the value at a settled point. There must be no function in it.
  Value value(const std::vector<Parameter>& parameters, const Point& point) const;
  // Adds values by path. What is not a dict is one value.
  void add_values(const std::vector<Parameter>& parameters, const Point& point, const std::string& path,
                  Config& values) const;
  // Sets the coordinates of a value; returns false if it cannot come from this entry.
  bool locate(const Value* value, const std::vector<Parameter>& parameters, Point& point) const;

 private:
  static std::size_t option(const Parameter& choice, double coordinate) {
    const auto last = static_cast<std::size_t>(choice.num_values) - 1;
    return std::min(last, static_cast<std::size_t>(coordinate * static_cast<double>(choice.num_values)));
  }
  bool locate_number(const Value& value, const Parameter& own, Point& point) const;

  friend class Parameters;
};

// Turns a space into nodes and parameters.
class Parameters::Builder {
 public:
  using Condition = std::optional<Parameter::Condition>;

  explicit Builder(std::vector<Parameter>& parameters) : parameters_(parameters) {}

  // `whole`: the entry is a part of a value that is given as a whole.
  Node build(const SpaceEntry& entry, const std::string& path, const Condition& condition, bool whole) {
    return std::visit(
        Overload{[&](const Domain& domain) { return build(domain, path, condition); },
                 [&](const GridSearch&) -> Node {
                   throw InvalidArgument("\"" + path +
                                         "\" is a grid, which only RandomSearch searches: write tune::choice");
                 },
                 [&](const SampleFrom& function) -> Node {
                   if (whole)
                     throw InvalidArgument("\"" + path + "\" has the function " + function.function +
                                           " within what is chosen as a whole: give it a key outside");
                   return {.kind = Node::Kind::function};
                 },
                 [](const Value& constant) -> Node { return {.constant = constant}; },
                 [&](const std::shared_ptr<const Entries>& items) { return list(*items, path, condition, whole); },
                 [&](const std::shared_ptr<const Space>& space) { return dict(*space, path, condition, whole); }},
        entry.data());
  }

  Node dict(const Space& space, const std::string& path, const Condition& condition, bool whole) {
    Node node{.kind = Node::Kind::dict};
    for (const auto& [key, item] : space) {
      node.keys.push_back(key);
      node.nodes.push_back(build(item, join(path, key), condition, whole));
    }
    return node;
  }

 private:
  Node build(const Domain& domain, const std::string& path, const Condition& condition) {
    const std::size_t index = parameters_.size();
    parameters_.push_back({.path = path, .domain = domain, .condition = condition, .num_values = count_values(domain)});
    const auto* choice = std::get_if<Choice>(&domain);
    Node node{.kind = choice == nullptr ? Node::Kind::number : Node::Kind::choice, .parameter = index};
    if (choice == nullptr) return node;
    for (const SpaceEntry& option : *choice->options)
      node.nodes.push_back(build(option, path, Parameter::Condition{index, node.nodes.size()}, true));
    return node;
  }

  // A list whose items are all constants or functions is drawn after everything else.
  Node list(const Entries& items, const std::string& path, const Condition& condition, bool whole) {
    Node node{.kind = Node::Kind::list};
    const std::size_t before = parameters_.size();
    for (const SpaceEntry& item : items)
      node.nodes.push_back(build(item, join(path, std::to_string(node.nodes.size())), condition, whole));
    if (!node.has_functions()) return node;
    if (parameters_.size() > before)
      throw InvalidArgument("\"" + path +
                            "\" is a list of both domains and functions: give the functions a key of "
                            "their own");
    return {.kind = Node::Kind::function};
  }

  std::vector<Parameter>& parameters_;
};

// ---- Points and values

Value Parameters::Node::value(const std::vector<Parameter>& parameters, const Point& point) const {
  switch (kind) {
    case Kind::constant:
    case Kind::function:
      return constant;
    case Kind::number:
      return std::get<Value>(at_quantile(parameters[parameter].domain, point[parameter]).data());
    case Kind::choice:
      return nodes[option(parameters[parameter], point[parameter])].value(parameters, point);
    case Kind::list: {
      List items;
      for (const Node& node : nodes) items.push_back(node.value(parameters, point));
      return items;
    }
    case Kind::dict: {
      Dict entries;
      for (std::size_t i = 0; i < nodes.size(); ++i) entries.emplace_back(keys[i], nodes[i].value(parameters, point));
      return entries;
    }
  }
  return {};
}

void Parameters::Node::add_values(const std::vector<Parameter>& parameters, const Point& point, const std::string& path,
                                  Config& values) const {
  if (!has_parameters()) return;
  if (kind != Kind::dict) return values.set(path, value(parameters, point));
  for (std::size_t i = 0; i < nodes.size(); ++i) nodes[i].add_values(parameters, point, join(path, keys[i]), values);
}

bool Parameters::Node::locate_number(const Value& value, const Parameter& own, Point& point) const {
  if (!contains(SpaceEntry(own.domain), value)) return false;
  Value number = value;
  if (const auto* ordinal = std::get_if<Ordinal>(&own.domain)) {
    const auto is_it = [&](const Value& option) { return contains(SpaceEntry(option), value); };
    number = static_cast<double>(std::ranges::find_if(ordinal->options, is_it) - ordinal->options.begin());
  }
  point[parameter] = quantiles_of(own.domain, number).middle();
  return true;
}

bool Parameters::Node::locate(const Value* value, const std::vector<Parameter>& parameters, Point& point) const {
  if (kind == Kind::function) return true;
  if (value == nullptr) return !has_parameters();
  switch (kind) {
    case Kind::constant:
    case Kind::function:
      return contains(SpaceEntry(constant), *value);
    case Kind::number:
      return locate_number(*value, parameters[parameter], point);
    case Kind::choice:
      for (std::size_t i = 0; i < nodes.size(); ++i) {
        Point attempt = point;
        if (!nodes[i].locate(value, parameters, attempt)) continue;
        point = std::move(attempt);
        point[parameter] = quantiles_of(parameters[parameter].domain, static_cast<double>(i)).middle();
        return true;
      }
      return false;
    case Kind::list:
      if (!value->is_list() || value->items().size() != nodes.size()) return false;
      for (std::size_t i = 0; i < nodes.size(); ++i) {
        if (!nodes[i].locate(&value->items()[i], parameters, point)) return false;
      }
      return true;
    case Kind::dict:
      if (!value->is_dict()) return false;
      for (std::size_t i = 0; i < nodes.size(); ++i) {
        if (!nodes[i].locate(find_entry(value->dict(), keys[i]), parameters, point)) return false;
      }
      return true;
  }
  return false;
}

// ---- Parameter

bool Parameter::is_discrete() const {
  const auto* normal = std::get_if<Normal>(&domain);
  return num_values > 0 || (normal != nullptr && normal->q > 0);
}

Parameter::Cell Parameter::cell(double coordinate) const {
  if (!is_discrete()) return {coordinate, coordinate};
  if (std::holds_alternative<Choice>(domain) || std::holds_alternative<Ordinal>(domain))
    return quantiles_of(domain, std::floor(coordinate * static_cast<double>(num_values)));
  return quantiles_of(domain, std::get<Value>(at_quantile(domain, coordinate).data()));
}

// ---- Parameters

Parameters::Parameters(const Space& space) {
  root_ = std::make_shared<const Node>(Builder(all_).dict(space, "", std::nullopt, false));
}

bool Parameters::exists(std::size_t index, const Point& point) const {
  const std::optional<Parameter::Condition>& condition = all_[index].condition;
  if (!condition) return true;
  const double choice = point[condition->parameter];
  return !std::isnan(choice) && Node::option(all_[condition->parameter], choice) == condition->option &&
         exists(condition->parameter, point);
}

Point Parameters::settled(Point point) const {
  for (std::size_t i = 0; i < all_.size(); ++i)
    point[i] = exists(i, point) ? all_[i].cell(point[i]).middle() : kNotANumber;
  return point;
}

Config Parameters::config_of(const Point& point) const {
  Config values;
  root_->add_values(all_, point, "", values);
  return values;
}

std::optional<Point> Parameters::point_of(const Config& config) const {
  Point point(all_.size(), kNotANumber);
  const Value value(config.dict());
  if (!root_->locate(&value, all_, point)) return std::nullopt;
  return point;
}

}  // namespace cadre::tune
