// Options of a searcher or scheduler within those of another one.
#pragma once

#include <string>
#include <vector>

#include "cadre/tune/options_of.h"
#include "tune/held_options.h"

namespace cadre::tune {

template <class Made, class Setting>
void complete_inner(OptionsOf<Made, Setting>& inner, TunerOptions& options, std::vector<std::string>& notes) {
  if (!inner.empty()) inner = OptionsOf<Made, Setting>(inner.held().completed(options, notes));
}

// `name` is that of the member; `example` is a value for it.
template <class Made, class Setting>
void check_inner(const OptionsOf<Made, Setting>& inner, const std::string& name, const std::string& example,
                 const TunerOptions& options, Faults& faults) {
  faults.unless(!inner.empty(), name, "there is none; say which one, such as ." + name + " = " + example);
  check_held(inner, name, options, faults);
}

template <class Made, class Setting>
void take_over_inner(OptionsOf<Made, Setting>& inner, const OptionsOf<Made, Setting>& stored) {
  if (!inner.empty() && !stored.empty()) inner = OptionsOf<Made, Setting>(inner.held().taking_over(stored.held()));
}

template <class Made, class Setting>
typename Made::Traits traits_of_inner(const OptionsOf<Made, Setting>& inner) {
  return inner.empty() ? typename Made::Traits{} : inner.held().traits();
}

}  // namespace cadre::tune
