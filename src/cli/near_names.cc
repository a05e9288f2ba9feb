#include "cli/near_names.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace cadre::cli {
namespace {

constexpr std::size_t kMostNames = 3;
constexpr std::size_t kLongestName = 200;  // because the time grows with the square

std::string lower_case(std::string_view text) {
  std::string lower(text.substr(0, kLongestName));
  std::ranges::transform(lower, lower.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c; });
  return lower;
}

// Returns the number of letters to insert, remove or replace (Levenshtein distance).
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = std::exchange(row[j + 1], std::min({row[j] + 1, row[j + 1] + 1, replaced}));
    }
  }
  return row.back();
}

}  // namespace

std::vector<std::string> near_names(std::string_view name, const std::vector<std::string>& names) {
  const std::string wanted = lower_case(name);
  std::vector<std::pair<std::size_t, std::string>> near;
  for (const std::string& one : names) {
    const std::string candidate = lower_case(one);
    const std::size_t far = distance(wanted, candidate);
    const bool is_longer = wanted.size() >= 2 && candidate.find(wanted) != candidate.npos;
    const bool is_shorter = candidate.size() >= 2 && (wanted.starts_with(candidate) || wanted.ends_with(candidate));
    if (far <= std::max<std::size_t>(1, wanted.size() / 3) || is_longer || is_shorter) near.emplace_back(far, one);
  }
  std::ranges::stable_sort(near, {}, &std::pair<std::size_t, std::string>::first);
  if (near.size() > kMostNames) near.resize(kMostNames);
  std::vector<std::string> found;
  for (auto& [far, one] : near) found.push_back(std::move(one));
  return found;
}

}  // namespace cadre::cli
