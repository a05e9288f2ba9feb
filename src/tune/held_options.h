// The types of options of schedulers and the like that this program has, and options of types that it lacks.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <string>
#include <utility>

#include "base/registry.h"
#include "cadre/error.h"
#include "cadre/tune/options_of.h"

namespace cadre::tune {

template <class Made, class Setting>
base::Registry<typename detail::OptionsReader<Made, Setting>::Pointer>& option_types() {
  static base::Registry<typename detail::OptionsReader<Made, Setting>::Pointer> instance;
  return instance;
}

// Options of a type that this program does not have. They can be shown, but nothing is made from them.
template <class Made, class Setting>
class UnknownOptions final : public detail::HeldOptions<Made, Setting> {
  using Base = detail::HeldOptions<Made, Setting>;

 public:
  UnknownOptions(std::string name, Value stored) : name_(std::move(name)), stored_(std::move(stored)) {}

  std::string_view name() const override { return name_; }
  Value stored() const override { return stored_; }
  std::shared_ptr<const Base> completed(TunerOptions&, std::vector<std::string>&) const override {
    return std::make_shared<UnknownOptions>(*this);
  }
  std::shared_ptr<const Base> taking_over(const Base&) const override {
    return std::make_shared<UnknownOptions>(*this);
  }
  void check(const TunerOptions&, Faults& faults) const override {
    faults.add("type", fmt::format("this program has none of that name; it has: {}. Was the experiment made by another "
                                   "program?",
                                   fmt::join(option_types<Made, Setting>().names(), ", ")));
  }
  std::unique_ptr<Made> make(const Setting&) const override {
    throw InvalidArgument("this program has no \"" + name_ + "\"");
  }
  typename Made::Traits traits() const override { return {}; }
  std::vector<std::pair<std::string, Config>> later_configs(const Config&) const override { return {}; }

 private:
  std::string name_;
  Value stored_;
};

template <class Made, class Setting>
Value stored_form(const OptionsOf<Made, Setting>& options) {
  return options.empty() ? Value() : options.held().stored();
}

template <class Made, class Setting>
void read_stored(OptionsOf<Made, Setting>& options, const Stored& stored) {
  const Value* type = find_entry(stored.dict(), "type");
  if (type == nullptr) stored.refuse("it has no \"type\"");
  const auto name = stored.at("type", *type).get<std::string>();
  const auto* read = option_types<Made, Setting>().find(name);
  options = OptionsOf<Made, Setting>(
      read != nullptr ? (*read)(stored) : std::make_shared<UnknownOptions<Made, Setting>>(name, stored.value()));
}

// Adds the faults of options; `what` is their use: "scheduler".
template <class Made, class Setting>
void check_held(const OptionsOf<Made, Setting>& held, const std::string& what, const TunerOptions& options,
                Faults& faults) {
  if (held.empty()) return;
  Faults own;
  const std::string name(held.name());
  const auto& twice = option_types<Made, Setting>().duplicates();
  own.unless(std::ranges::find(twice, name) == twice.end(), "type", "two types of this program have this name");
  held.held().check(options, own);
  faults.add_all(fmt::format("{} ({})", what, name), own);
}

}  // namespace cadre::tune
