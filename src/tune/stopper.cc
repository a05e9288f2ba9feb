#include "cadre/tune/stopper.h"

#include "cadre/error.h"
#include "tune/held_options.h"

namespace cadre::tune {

bool Stopper::on_result(const TrialView&, const Metrics&) { return false; }
void Stopper::on_trial_end(const TrialView&) {}
std::optional<std::string> Stopper::stop_all() const { return std::nullopt; }
void Stopper::load(const Value& state) {
  if (!state.is_null()) throw InvalidArgument("the state of a stopper without load() is not null");
}

namespace detail {

template <>
bool register_options<Stopper, StopperSetting>(std::string_view name,
                                               OptionsReader<Stopper, StopperSetting>::Pointer read) {
  option_types<Stopper, StopperSetting>().add(name, read);
  return true;
}

}  // namespace detail

template Value stored_form(const AnyStopper& options);
template void read_stored(AnyStopper& options, const Stored& stored);

}  // namespace cadre::tune
