#include "cli/option_texts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/host_object.h"
#include "cadre/stored.h"
#include "cadre/tune/tuner.h"
#include "cli/output.h"

namespace cadre::cli {
namespace {

constexpr std::size_t kLongestList = 200;  // in bytes; of longer ones the number of items is shown

std::string entries_text(const Dict& entries);
std::string typed_text(const Value& object);

std::string items_text(const List& items) {
  std::vector<std::string> texts;
  for (const Value& item : items) texts.push_back(to_json(base::without_host_objects(item)));
  return shown(fmt::format("{}", fmt::join(texts, ", ")));
}

// Formats {"type": "uniform", "lower": 0, "upper": 1, "q": 0} as "uniform(0, 1)".
std::string entry_text(const Value& entry) {
  if (!entry.is_dict() || Config(entry.dict()).find("type") == nullptr) return shown(to_json(entry));
  const Config fields(entry.dict());
  const std::string type = value_text(fields.at("type"));
  if (type == "constant") return shown(to_json(base::without_host_objects(fields.at("value"))));
  if (type == "space" || type == "mutations") return "{" + entries_text(fields.at("entries").dict()) + "}";
  if (type == "values") return "[" + items_text(fields.at("values").items()) + "]";
  std::vector<std::string> arguments;
  for (const auto& [key, value] : fields) {
    if (key == "type" || (key == "q" && (value == Value(0) || value == Value(0.0)))) continue;
    if (value.is_list()) {
      for (const Value& item : value.items()) arguments.push_back(entry_text(item));
    } else {
      arguments.push_back((key == "q" ? "q=" : "") + value_text(value));
    }
  }
  return fmt::format("{}({})", type, fmt::join(arguments, ", "));
}

std::string entries_text(const Dict& entries) {
  std::vector<std::string> texts;
  for (const auto& [key, entry] : entries) texts.push_back(shown(key) + ": " + entry_text(entry));
  return fmt::format("{}", fmt::join(texts, ", "));
}

bool is_default(const Value& value) {
  return value.is_null() || value == Value("") || value == Value(false) || value == Value(0) || value == Value(0.0) ||
         (value.is_dict() && value.dict().empty()) || (value.is_list() && value.items().empty());
}

// Returns the name of a stored function, {"function": name}; nullptr for other values.
const Value* function_name(const Value& value) {
  return value.is_dict() && value.dict().size() == 1 ? find_entry(value.dict(), "function") : nullptr;
}

// Formats the value of a field: "{lr: uniform(0, 1)}", "[1, 2]", "[1200 items]", or "(TPE: n_startup_trials=5)" for
// options within options.
std::string field_text(const Value& value) {
  if (value.is_list()) {
    std::string text = value_text(value);
    return text.size() <= kLongestList ? text : fmt::format("[{} items]", value.items().size());
  }
  if (!value.is_dict()) return value_text(value);
  const Value* type = find_entry(value.dict(), "type");
  return type != nullptr && type->is_string() ? "(" + typed_text(value) + ")" : "{" + entries_text(value.dict()) + "}";
}

// Returns "key=value, ..." for the fields that are not at their default.
std::string fields_text(const Dict& fields, std::initializer_list<std::string_view> left_out) {
  std::vector<std::string> texts;
  for (const auto& [key, field] : fields) {
    const Value* const function = function_name(field);
    const Value& value = function != nullptr ? *function : field;
    if (is_default(value) || std::ranges::find(left_out, key) != left_out.end()) continue;
    texts.push_back(fmt::format("{}={}", shown(key), field_text(value)));
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

// Does the same for the fields that differ from those of `usual`.
std::string changes_text(const Dict& fields, const Dict& usual) {
  Dict changes;
  for (const auto& [key, field] : fields) {
    const Value* const other = find_entry(usual, key);
    if (other == nullptr || *other != field) changes.emplace_back(key, field);
  }
  return fields_text(changes, {});
}

// Returns a text such as "FIFO" or "PopulationBasedTraining: metric=score, ...".
std::string typed_text(const Value& object) {
  if (!object.is_dict()) return shown(to_json(object));
  const std::string fields = fields_text(object.dict(), {"type"});
  return shown(Config(object.dict()).get<std::string>("type", "?")) + (fields.empty() ? "" : ": " + fields);
}

std::string stop_text(const Dict& stop) {
  std::vector<std::string> texts;
  for (const auto& [metric, threshold] : stop) {
    const Value* at_most = threshold.is_dict() ? find_entry(threshold.dict(), "at_most") : nullptr;
    texts.push_back(shown(metric) +
                    (at_most == nullptr ? " >= " + value_text(threshold) : " <= " + value_text(*at_most)));
  }
  return fmt::format("{}", fmt::join(texts, " or "));
}

std::string stoppers_text(const Value& stoppers) {
  std::vector<std::string> texts;
  for (const Value& stopper : stoppers.items()) texts.push_back(typed_text(stopper));
  return fmt::format("{}", fmt::join(texts, "; "));
}

}  // namespace

std::vector<std::pair<std::string, std::string>> option_texts(const Config& options) {
  std::vector<std::pair<std::string, std::string>> texts;
  const auto add = [&](const char* label, const char* path, const auto& text_of) {
    const Value* value = options.find(path);
    if (value == nullptr || !(value->is_dict() || value->is_list())) return;
    if (std::string text = text_of(*value); !text.empty()) texts.emplace_back(label, std::move(text));
  };
  const auto fields = [](const Value& value) { return fields_text(value.dict(), {}); };
  add("search space", "param_space", [](const Value& value) { return entries_text(value.dict()); });
  add("tuning", "tune_config",
      [](const Value& value) { return fields_text(value.dict(), {"searcher", "scheduler", "parking"}); });
  add("searcher", "tune_config/searcher", typed_text);
  add("scheduler", "tune_config/scheduler", typed_text);
  add("stop", "run_config/stop/thresholds", [](const Value& value) { return stop_text(value.dict()); });
  add("stoppers", "run_config/stop/stoppers", stoppers_text);
  add("checkpoints", "run_config/checkpoint_config", fields);
  add("failures", "run_config/failure_config",
      [](const Value& value) { return changes_text(value.dict(), to_stored(tune::FailureConfig()).dict()); });
  add("limits", "run_config/limits", fields);
  add("resources", "trainable/resources", fields);
  return texts;
}

}  // namespace cadre::cli
