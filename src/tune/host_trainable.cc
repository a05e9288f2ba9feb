#include "tune/host_trainable.h"

#include "cadre/tune/class_trainable.h"
#include "tune/class_run.h"
#include "tune/program/run_program.h"
#include "tune/session.h"
#include "worker/entries.h"
#include "worker/host.h"

namespace cadre {

tune::TrainableMethods Host::methods(const HostFunction&) { return {}; }

std::unique_ptr<tune::ClassTrainable> Host::make_class(const HostFunction&) {
  throw Error("this host has no trainable classes");
}

namespace tune {
namespace {

// No function has such a name.
constexpr const char* kHostEntry = "trainable of a host";

void run_host_trainable(Session& session) {
  const TrialAssignment& assignment = session.assignment();
  Host& host = worker::host_of(assignment.trial_name);
  const TrainableMethods methods = host.methods(assignment.function);
  if (methods.is_class) run_class(session, host.make_class(assignment.function), assignment.trial_name, methods);
  host.run(assignment.function, {assignment.config.value(), assignment.parameters.value()});
}

[[maybe_unused]] const bool is_registered =
    worker::register_entry(kHostEntry, [](channel::WorkerEnd& controller, const Value& payload) {
      run_trial(controller, payload, run_host_trainable);
      return Value();
    });

}  // namespace

std::string entry_of(const Trainable& trainable) {
  if (trainable.program.is_set()) return program_entry();
  return trainable.host_function.is_set() ? kHostEntry : trainable.name;
}

}  // namespace tune
}  // namespace cadre
