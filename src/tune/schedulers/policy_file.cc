#include "tune/schedulers/policy_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>

#include "base/cut_text.h"
#include "base/file.h"
#include "base/json.h"

namespace cadre::tune {
namespace fs = std::filesystem;
namespace {

constexpr std::uintmax_t kLargestFile = 64u << 20;
constexpr std::size_t kMostFaults = 10;  // in one message

std::string shown(const Value& value) {
  constexpr std::size_t most = 60;
  const std::string text = to_json(value);
  return text.size() <= most ? text : std::string(base::first_bytes(text, most)) + "...";
}

PolicyLine parse_line(std::string_view text) {
  const Value value = base::parse_json(text, "it");
  if (!value.is_list() || value.items().size() != 6)
    throw InvalidArgument("it is " + shown(value) + " and no list of 6 elements");
  const auto element = [&](std::size_t index, const char* name, const char* kind, bool (Value::*is)() const) {
    const Value& found = value.items()[index];
    if (!(found.*is)())
      throw InvalidArgument(fmt::format("element {}, the {}, is {} and no {}", index + 1, name, shown(found), kind));
    return found;
  };
  return {.target = element(0, "target's tag", "text", &Value::is_string).get<std::string>(),
          .donor = element(1, "donor's tag", "text", &Value::is_string).get<std::string>(),
          .target_iteration = element(2, "target's iteration", "integer", &Value::is_integer).get<std::int64_t>(),
          .donor_iteration = element(3, "donor's iteration", "integer", &Value::is_integer).get<std::int64_t>(),
          .donor_config = Config(element(4, "donor's config", "dictionary", &Value::is_dict).dict()),
          .new_config = Config(element(5, "new config", "dictionary", &Value::is_dict).dict())};
}

fs::path expand_home(const fs::path& path) {
  const std::string text = path.string();
  if (text != "~" && !text.starts_with("~/")) return path;
  const char* home = std::getenv("HOME");
  if (home == nullptr || *home == '\0')
    throw InvalidArgument("cannot read the policy file " + text + ": there is no HOME for its ~");
  return home + text.substr(1);
}

}  // namespace

std::vector<PolicyLine> parse_policy_lines(std::string_view text, const std::string& source) {
  std::vector<PolicyLine> lines;
  std::vector<std::string> faults;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    try {
      lines.push_back(parse_line(text.substr(0, end)));
    } catch (const Error& error) {
      faults.push_back(fmt::format("\n  line {}: {}", number, error.what()));
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  if (!faults.empty()) {
    std::string message = source + " is no policy file of Population Based Training:";
    for (std::size_t i = 0; i < std::min(faults.size(), kMostFaults); ++i) message += faults[i];
    if (faults.size() > kMostFaults) message += fmt::format("\n  and {} more lines", faults.size() - kMostFaults);
    throw InvalidArgument(message);
  }
  auto first = lines.end();
  while (first != lines.begin() && (first == lines.end() || std::prev(first)->target == first->donor)) --first;
  return {std::make_move_iterator(first), std::make_move_iterator(lines.end())};
}

PolicySchedule parse_policy(std::string_view text, const std::string& source) {
  std::vector<PolicyLine> lines = parse_policy_lines(text, source);
  PolicySchedule schedule;
  if (!lines.empty()) schedule.initial_config = std::move(lines.front().donor_config);
  for (PolicyLine& line : lines) schedule.changes.push_back({line.donor_iteration, std::move(line.new_config)});
  return schedule;
}

PolicySchedule read_policy_file(const fs::path& path) {
  const fs::path file = expand_home(path);
  const auto refuse = [&](const std::string& why) {
    throw InvalidArgument(fmt::format(
        "cannot read the policy file {}: {}. It is pbt_policy_<trial id>.txt in the directory of an experiment with "
        "Population Based Training, of a trial that has exploited another one",
        file.string(), why));
  };
  std::error_code error;
  const fs::file_status status = fs::status(file, error);
  if (!fs::exists(status)) refuse(error ? error.message() : "there is no such file");
  if (!fs::is_regular_file(status)) refuse("it is no file");
  if (fs::file_size(file, error) > kLargestFile) refuse("it is larger than 64 MiB");
  std::string text;
  try {
    text = base::read_file(file);
  } catch (const StorageError& failed) {
    refuse(failed.what());
  }
  return parse_policy(text, file.string());
}

Config changed_config(const Config& present, const PolicySchedule& schedule, const PolicySchedule::Change& change) {
  Config changed;
  for (const auto& [key, value] : present) {
    if (const Value* next = find_entry(change.config.dict(), key)) {
      changed.set(key, *next);
    } else if (find_entry(schedule.initial_config.dict(), key) == nullptr) {
      changed.set(key, value);
    }
  }
  for (const auto& [key, value] : change.config) changed.set(key, value);
  return changed;
}

}  // namespace cadre::tune
