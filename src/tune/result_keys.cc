#include "tune/result_keys.h"

#include <fmt/format.h>

#include "base/value_limits.h"
#include "cadre/error.h"

#include <algorithm>
#include <array>

namespace cadre::tune {
namespace {

constexpr std::array kOfEveryResult = {result_key::training_iteration,
                                       result_key::time_this_iter_s,
                                       result_key::time_total_s,
                                       result_key::timestamp,
                                       result_key::date,
                                       result_key::trial_id,
                                       result_key::pid,
                                       result_key::hostname,
                                       result_key::node_ip,
                                       result_key::time_since_restore,
                                       result_key::iterations_since_restore,
                                       result_key::done,
                                       result_key::checkpoint_dir_name};

constexpr std::array kCounters = {result_key::training_iteration, result_key::iterations_since_restore,
                                  result_key::time_total_s,       result_key::time_since_restore,
                                  result_key::timestamp,          result_key::timesteps_total,
                                  result_key::episodes_total};

void add_below(const Dict& entries, const std::string& prefix, std::vector<std::string>& paths) {
  for (const auto& [key, value] : entries) {
    if (paths.size() >= kMostNumberPaths) return;
    const std::string path = prefix + key;
    if (value.is_dict()) {
      add_below(value.dict(), path + "/", paths);
    } else if (value.is_number() && std::ranges::find(kOfEveryResult, path) == kOfEveryResult.end() &&
               std::ranges::find(paths, path) == paths.end()) {
      paths.push_back(path);
    }
  }
}

}  // namespace

std::vector<std::string> number_paths(const Metrics& result) {
  std::vector<std::string> paths;
  add_number_paths(result, paths);
  return paths;
}

void add_number_paths(const Metrics& result, std::vector<std::string>& paths) { add_below(result.dict(), "", paths); }

bool is_counter(std::string_view key) { return std::ranges::find(kCounters, key) != kCounters.end(); }

bool is_true(const Metrics& result, std::string_view key) {
  const Value* value = result.find(key);
  return value != nullptr && value->is_bool() && value->get<bool>();
}

}  // namespace cadre::tune
