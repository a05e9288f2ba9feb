#include "tune/options/extend.h"

namespace cadre::tune {
namespace {

// Calls `visit` with each member of an extension and the option that it replaces.
template <class Changes, class Options, class Visit>
void for_each_member(Changes& extension, Options& options, const Visit& visit) {
  auto& tune = options.tune_config;
  visit(extension.num_samples, tune.num_samples);
  visit(extension.max_concurrent_trials, tune.max_concurrent_trials);
  visit(extension.time_budget, tune.time_budget);
  visit(extension.stop, options.run_config.stop);
  visit(extension.param_space, options.param_space);
  visit(extension.searcher, tune.searcher);
  visit(extension.scheduler, tune.scheduler);
}

}  // namespace

bool Extension::is_set() const {
  bool is_set = false;
  const TunerOptions any;
  for_each_member(*this, any, [&](const auto& member, const auto&) { is_set |= member.has_value(); });
  return is_set;
}

void extend(TunerOptions& options, const Extension& extension) {
  for_each_member(extension, options, [](const auto& member, auto& option) {
    if (member) option = *member;
  });
}

Extension extension_between(const TunerOptions& before, const TunerOptions& after) {
  Extension extension;
  for_each_member(extension, after, [](auto& member, const auto& option) { member = option; });
  for_each_member(extension, before, [](auto& member, const auto& option) {
    if (member == option) member.reset();
  });
  return extension;
}

}  // namespace cadre::tune
