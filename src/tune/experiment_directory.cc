#include "tune/experiment_directory.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>

#include "base/name.h"
#include "cadre/error.h"
#include "tune/searchers/variant_generator.h"

namespace cadre::tune {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t kLongestDirectoryName = 100;

std::string with_variables(std::string name, const Dict& sampled) {
  const std::string variables = format_variables(sampled);
  return variables.empty() ? name : name + "_" + variables;
}

}  // namespace

std::string policy_file_name(std::string_view trial_id) { return fmt::format("pbt_policy_{}.txt", trial_id); }

std::string trial_id(TrialIndex index) { return fmt::format("{:05d}", index); }

std::string trial_tag(TrialIndex index, const Dict& sampled) { return with_variables(fmt::to_string(index), sampled); }

TrialIndex trial_of_tag(std::string_view tag) {
  TrialIndex index = 0;
  const auto [rest, fault] = std::from_chars(tag.data(), tag.data() + tag.size(), index);
  if (fault != std::errc() || (rest != tag.data() + tag.size() && *rest != '_'))
    throw StorageError(fmt::format("\"{}\" is no trial's tag: it does not begin with an index", tag));
  return index;
}

std::string trial_directory_name(TrialIndex index, const Dict& sampled) {
  return base::safe_file_name(with_variables(trial_id(index), sampled), kLongestDirectoryName);
}

}  // namespace cadre::tune
