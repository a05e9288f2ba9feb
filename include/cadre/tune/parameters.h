/// \file
/// A search space as the numbers that a searcher chooses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cadre/tune/search_space.h"
#include "cadre/value.h"

namespace cadre::tune {

/// A config as a point of the unit cube: a coordinate for each parameter, from 0 to below 1, and NaN for a parameter
/// that the config lacks.
using Point = std::vector<double>;

/// A number or an option that is drawn from a domain of a search space.
///
/// Its coordinate is the quantile of its value: coordinates drawn uniformly from 0 to 1 give values distributed as the
/// domain says, logarithmic or normal ones too. All coordinates of a cell give the same value of a discrete domain.
struct Parameter {
  /// Requires that another parameter, a choice, has one of its options.
  struct Condition {
    std::size_t parameter = 0;                          ///< index of the choice
    std::size_t option = 0;                             ///< index of the option
    bool operator==(const Condition&) const = default;  ///< compares both
  };
  /// The coordinates that give one value: from `begin` to below `end`; both are equal in a continuum.
  struct Cell {
    double begin = 0;                                            ///< from 0
    double end = 0;                                              ///< up to 1
    double middle() const { return begin + (end - begin) / 2; }  ///< returns the coordinate of the value
  };

  std::string path = {};                    ///< the value's key in a config: "model/width"; "sizes/0" of a list's item
  Domain domain = {};                       ///< what it is drawn from
  std::optional<Condition> condition = {};  ///< when a config has it; empty: always
  /// Number of its values; 0: a continuum, or multiples without bounds.
  std::int64_t num_values = 0;

  /// Returns false for a choice, whose options are in no order.
  bool is_ordered() const { return !std::holds_alternative<Choice>(domain); }
  /// Returns true if cells are more than single coordinates.
  bool is_discrete() const;
  /// Returns the cell that contains a coordinate from 0 to below 1.
  Cell cell(double coordinate) const;
};

/// The parameters of a search space: each domain in it, also those within options of a choice, which exist only where
/// that option is chosen. Constants and functions (SampleFrom) are no parameters. A value, cheap to copy.
class Parameters {
 public:
  /// Finds them. Throws InvalidArgument, which names the key, if the space has a grid, or a function within a list or
  /// an option that is to be chosen as a whole.
  explicit Parameters(const Space& space);

  const std::vector<Parameter>& all() const { return all_; }                    ///< returns them, choices first
  std::size_t size() const { return all_.size(); }                              ///< returns their number
  const Parameter& operator[](std::size_t index) const { return all_[index]; }  ///< returns one, below size()
  /// Returns true if a point has the parameter, by the options of its choices.
  bool exists(std::size_t index, const Point& point) const;
  /// Returns the point with the middle of its cell for every discrete coordinate, and NaN for parameters that do not
  /// exist there. The others must be from 0 to below 1.
  Point settled(Point point) const;
  /// Returns the values at a settled point, by path as Searcher::suggest() does.
  Config config_of(const Point& point) const;
  /// Returns the settled point of a config; empty if a value is missing or not in its domain. Other keys do not matter.
  std::optional<Point> point_of(const Config& config) const;

 private:
  struct Node;
  class Builder;

  std::vector<Parameter> all_;
  std::shared_ptr<const Node> root_;
};

}  // namespace cadre::tune
