#include "cli/columns.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <set>

#include "cadre/error.h"
#include "cli/near_names.h"
#include "tune/result_keys.h"

namespace cadre::cli {
namespace {

constexpr std::string_view kConfigPrefix = "config/";
constexpr const char* kOwnColumns[] = {"trial_id", "status", "error", "attempts", "failures", "results", "exploits"};

std::string trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return std::string(text.substr(begin, text.find_last_not_of(" \t") - begin + 1));
}

Value parse_value(const std::string& text) {
  if (text.size() >= 2 && (text.front() == '"' || text.front() == '\'') && text.back() == text.front())
    return text.substr(1, text.size() - 2);
  if (text == "true" || text == "True") return true;
  if (text == "false" || text == "False") return false;
  if (text == "null" || text == "None") return {};
  const char* end = text.data() + text.size();
  std::int64_t integer = 0;
  if (const auto [rest, fault] = std::from_chars(text.data(), end, integer); fault == std::errc() && rest == end)
    return integer;
  double number = 0;
  if (const auto [rest, fault] = std::from_chars(text.data(), end, number); fault == std::errc() && rest == end)
    return number;
  return text;
}

// Returns -1, 0 or 1; empty if the two values have no order.
std::optional<int> compare(const Value& a, const Value& b) {
  const auto sign = [](const auto& x, const auto& y) { return x < y ? -1 : y < x ? 1 : 0; };
  if (a.is_integer() && b.is_integer()) return sign(a.get<std::int64_t>(), b.get<std::int64_t>());
  if (a.is_number() && b.is_number()) {
    const double x = a.get<double>();
    const double y = b.get<double>();
    if (std::isnan(x) || std::isnan(y)) return std::nullopt;
    return sign(x, y);
  }
  if (a.is_string() && b.is_string()) return sign(a.get<std::string>(), b.get<std::string>());
  if (a == b) return 0;
  return std::nullopt;
}

std::vector<std::string> columns_of(const tune::ResultGrid& grid) {
  std::vector<std::string> names = metrics_of(grid);
  for (const char* name : {"training_iteration", "time_total_s"}) names.emplace_back(name);
  for (const std::string& path : parameters_of(grid)) names.push_back(std::string(kConfigPrefix) + path);
  for (const char* name : kOwnColumns) names.emplace_back(name);
  return names;
}

void add_missing(const tune::ResultGrid& grid, const std::string& column, std::vector<std::string>& faults) {
  if (std::ranges::find(kOwnColumns, column) != std::end(kOwnColumns)) return;
  if (std::ranges::any_of(grid, [&](const tune::Result& trial) { return value_of(trial, column).has_value(); })) return;
  const std::vector<std::string> near = near_names(column, columns_of(grid));
  faults.push_back(fmt::format("no trial of {} has a column \"{}\"{}", grid.summary().name, column,
                               near.empty() ? "" : fmt::format(" (did you mean {}?)", fmt::join(near, ", "))));
}

}  // namespace

std::optional<Value> value_of(const tune::Result& trial, const std::string& column) {
  if (column == "trial_id") return trial.trial_id;
  if (column == "status") return to_string(trial.status);
  if (column == "error") return trial.error ? std::optional<Value>(*trial.error) : std::nullopt;
  if (column == "attempts") return trial.attempts;
  if (column == "failures") return trial.failures;
  if (column == "exploits") return trial.exploits.size();
  if (column == "results") return trial.num_results();
  const Value* value = trial.metrics.find(column);
  if (value == nullptr) value = trial.config.find(column);
  if (value == nullptr && column.starts_with(kConfigPrefix))
    value = trial.config.find(std::string_view(column).substr(kConfigPrefix.size()));
  if (value == nullptr) return std::nullopt;
  return *value;
}

std::vector<std::string> parameters_of(const tune::ResultGrid& grid) {
  std::vector<std::string> paths;
  std::set<std::string> known;
  const auto add = [&](const std::string& path) {
    if (known.insert(path).second) paths.push_back(path);
  };
  for (const tune::Result& trial : grid) {
    for (const auto& [path, value] : trial.sampled) add(path);
  }
  for (const tune::Result& trial : grid) {
    for (const tune::ExploitRecord& exploit : trial.exploits) {
      for (const tune::ExploitRecord::Change& change : exploit.changes) add(change.key);
    }
  }
  return paths;
}

std::vector<std::string> metrics_of(const tune::ResultGrid& grid) {
  std::vector<std::string> names;
  std::set<std::string> known;
  if (!grid.summary().metric.empty()) names.push_back(*known.insert(grid.summary().metric).first);
  for (const tune::Result& trial : grid) {
    for (std::string& name : tune::number_paths(trial.metrics)) {
      if (trial.config.find(name) == nullptr && known.insert(name).second) names.push_back(std::move(name));
    }
  }
  return names;
}

Filter::Filter(const std::string& text) {
  const std::size_t at = text.find_first_of("<>=!");
  std::string_view rest = std::string_view(text).substr(std::min(at, text.size()));
  for (const char* operation : {"<=", ">=", "==", "!=", "<", ">"}) {
    if (operation_.empty() && rest.starts_with(operation)) operation_ = operation;
  }
  column_ = trimmed(std::string_view(text).substr(0, std::min(at, text.size())));
  const std::string value = operation_.empty() ? "" : trimmed(rest.substr(operation_.size()));
  if (column_.empty() || value.empty())
    throw InvalidArgument("\"" + text +
                          "\" is no filter: write a column, one of < <= == != >= >, and a value, as in \"loss < 0.5\"");
  value_ = parse_value(value);
  text_ = value_.is_string() ? value_ : Value(value);
}

bool Filter::operator()(const tune::Result& trial) const {
  const std::optional<Value> value = value_of(trial, column_);
  if (!value) return false;
  const bool is_equality = operation_ == "==" || operation_ == "!=";
  const std::optional<int> order = compare(*value, is_equality && value->is_string() ? text_ : value_);
  if (operation_ == "==") return order == 0;
  if (operation_ == "!=") return order != 0;
  if (!order || (*order == 0 && !value->is_number() && !value->is_string())) return false;
  if (operation_ == "<") return *order < 0;
  if (operation_ == "<=") return *order <= 0;
  return operation_ == ">" ? *order > 0 : *order >= 0;
}

void check_columns(const tune::ResultGrid& grid, const std::vector<std::string>& columns) {
  if (grid.size() == 0) return;
  std::vector<std::string> faults;
  for (const std::string& column : columns) add_missing(grid, column, faults);
  if (faults.empty()) return;
  throw InvalidArgument(fmt::format("{}; there are: {}", fmt::join(faults, "; "), fmt::join(columns_of(grid), ", ")));
}

std::vector<const tune::Result*> choose_trials(const tune::ResultGrid& grid, const Order& order) {
  const std::vector<Filter> filters(order.filters.begin(), order.filters.end());
  std::vector<std::string> columns;
  for (const Filter& filter : filters) columns.push_back(filter.column());
  if (!order.sort.empty()) columns.push_back(order.sort);
  check_columns(grid, columns);
  std::vector<const tune::Result*> chosen;
  for (const tune::Result& trial : grid) {
    if (std::ranges::all_of(filters, [&](const Filter& filter) { return filter(trial); })) chosen.push_back(&trial);
  }
  if (!order.sort.empty()) {
    // A value without an order, such as NaN, counts as missing.
    std::vector<std::pair<std::optional<Value>, const tune::Result*>> keyed;
    for (const tune::Result* trial : chosen) {
      std::optional<Value> value = value_of(*trial, order.sort);
      if (value && !(value->is_string() || (value->is_number() && !std::isnan(value->get<double>())))) value.reset();
      keyed.emplace_back(std::move(value), trial);
    }
    std::ranges::stable_sort(keyed, [&](const auto& a, const auto& b) {
      if (!a.first || !b.first) return a.first.has_value() && !b.first.has_value();
      if (a.first->is_string() != b.first->is_string()) return b.first->is_string();
      const int sign = compare(*a.first, *b.first).value_or(0);
      return order.descending ? sign > 0 : sign < 0;
    });
    for (std::size_t i = 0; i < keyed.size(); ++i) chosen[i] = keyed[i].second;
  } else if (order.descending) {
    std::ranges::reverse(chosen);
  }
  if (order.limit > 0 && chosen.size() > order.limit) chosen.resize(order.limit);
  return chosen;
}

}  // namespace cadre::cli
