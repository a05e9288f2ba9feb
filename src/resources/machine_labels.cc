#include "resources/machine_labels.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "resources/gpu_kinds.h"

namespace cadre::resources {
namespace {

bool is_plain(std::string_view text) { return !text.empty() && text.find_first_of(" \t\r\n!(),") == text.npos; }

// "eu", "!eu", "in(eu,us)" or "!in(eu,us)".
struct Selector {
  bool negated = false;
  std::vector<std::string_view> values = {};

  bool accepts(std::string_view value) const { return (std::ranges::find(values, value) != values.end()) != negated; }
};

// Parses a selector. Returns views into the text, which need not be valid.
Selector parse(std::string_view text) {
  constexpr std::string_view in = "in(";
  Selector selector{.negated = text.starts_with('!')};
  if (selector.negated) text.remove_prefix(1);
  if (!text.starts_with(in) || !text.ends_with(')')) {
    selector.values.push_back(text);
    return selector;
  }
  text = text.substr(in.size(), text.size() - in.size() - 1);
  for (;;) {
    const auto comma = text.find(',');
    selector.values.push_back(text.substr(0, comma));
    if (comma == text.npos) return selector;
    text.remove_prefix(comma + 1);
  }
}

std::string fault_of_name(const std::string& name) {
  return is_plain(name)
             ? ""
             : fmt::format("\"{}\" is no name of a label: give it characters, but no space and none of \"!(),\"", name);
}

}  // namespace

std::string fault_of_labels(const Resources& machine) {
  for (const auto& [name, value] : machine.labels) {
    if (std::string fault = fault_of_name(name); !fault.empty()) return fault;
    if (!is_plain(value))
      return fmt::format("the value of {} is \"{}\": give it characters, but no space and none of \"!(),\"", name,
                         value);
  }
  return {};
}

std::string fault_of_selectors(const Resources& wanted) {
  for (const auto& [name, text] : wanted.labels) {
    if (std::string fault = fault_of_name(name); !fault.empty()) return fault;
    if (!std::ranges::all_of(parse(text).values, is_plain))
      return fmt::format("\"{}\" of {} is none of value, !value, in(value,value) and !in(value,value)", text, name);
  }
  return {};
}

std::string mismatch(const Resources& machine, const Resources& wanted) {
  const auto is = [](const std::string& there) { return there.empty() ? "there is none" : "it is " + there; };
  if (!wanted.accelerator_type.empty() && !has_kind(machine, wanted.accelerator_type))
    return fmt::format("accelerator type {} ({})", wanted.accelerator_type, is(machine.accelerator_type));
  for (const auto& [name, text] : wanted.labels) {
    const auto found = machine.labels.find(name);
    const std::string value = found == machine.labels.end() ? "" : found->second;
    if (!parse(text).accepts(value)) return fmt::format("label {}={} ({})", name, text, is(value));
  }
  return {};
}

std::string add_selectors(Resources& wanted, const Resources& more) {
  const auto add = [](std::string& there, const std::string& text, const std::string& name) -> std::string {
    if (!there.empty() && !text.empty() && there != text)
      return fmt::format("{} is asked to be {} and {}: ask for one", name, there, text);
    if (!text.empty()) there = text;
    return {};
  };
  std::string fault = add(wanted.accelerator_type, more.accelerator_type, "the accelerator type");
  for (const auto& [name, text] : more.labels) {
    std::string another = add(wanted.labels[name], text, "label " + name);
    if (fault.empty()) fault = std::move(another);
  }
  return fault;
}

}  // namespace cadre::resources
