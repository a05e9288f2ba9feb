#include "train/validator.h"

#include <functional>
#include <optional>
#include <string_view>
#include <utility>

#include "base/value_limits.h"
#include "cadre/error.h"
#include "cadre/stored.h"
#include "cadre/validation.h"
#include "channel/worker_end.h"
#include "train/notices.h"
#include "worker/entries.h"
#include "worker/host.h"
#include "worker/parent_run.h"
#include "worker/reporting.h"
#include "worker/root_engine.h"
#include "worker/worker.h"

namespace cadre::train {
namespace fs = std::filesystem;
namespace {

const ValidatorAssignment* present = nullptr;

// The parent of runs that a validator starts: they start from the beginning in each try, and their reports are
// dropped.
class ValidatorRun final : public worker::ParentRun {
 public:
  explicit ValidatorRun(const ValidatorAssignment& assignment) : assignment_(assignment) { present = &assignment_; }
  ~ValidatorRun() override { present = nullptr; }

  fs::path directory() const override { return assignment_.directory; }
  fs::path experiment() const override { return assignment_.run_directory; }
  std::optional<Checkpoint> checkpoint() const override { return std::nullopt; }
  bool forward(const Metrics&, const fs::path&) override { return true; }

 private:
  const ValidatorAssignment& assignment_;
};

// Runs a validation without workers. If it tries to start some, notifies the controller, because no other try will
// have any either.
Metrics without_workers(channel::WorkerEnd& controller, const std::function<Metrics()>& validate) {
  try {
    return validate();
  } catch (const EngineError& error) {
    controller.send(channel::Notice{to_value(Notice(ValidatorLacksWorkers{error.what()}))});
    throw;
  }
}

Value run_validator(channel::WorkerEnd& controller, const Value& payload,
                    const std::function<Metrics(const ValidatorAssignment&)>& function) {
  const ValidatorAssignment assignment = to_validator_assignment(payload);
  worker::prepare_process(assignment.visible_devices, assignment.checkpoint, assignment.run_directory);
  if (assignment.worker_resources) worker::set_root_resources(*assignment.worker_resources);
  const ValidatorRun parent(assignment);
  const worker::Reporting reporting("the metrics that it returns");
  const auto validate = [&] { return function(assignment); };
  const Metrics metrics = assignment.worker_resources ? validate() : without_workers(controller, validate);
  base::check_metrics(metrics);
  return metrics.value();
}

// No function has such a name.
constexpr const char* kValidatorOfHost = "validator of a host";

[[maybe_unused]] const bool knows_validators_of_hosts =
    worker::register_entry(kValidatorOfHost, [](channel::WorkerEnd& controller, const Value& payload) {
      return run_validator(controller, payload, [](const ValidatorAssignment& mine) {
        const Value metrics = worker::host_of("a validator").run(mine.function, {mine.checkpoint, mine.config.value()});
        return Metrics(metrics.dict());
      });
    });

}  // namespace

std::string entry_of(const WantedValidation& wanted) {
  return wanted.host_function.is_set() ? kValidatorOfHost : wanted.function;
}

Value to_value(const ValidatorAssignment& assignment) { return cadre::to_stored(assignment); }

ValidatorAssignment to_validator_assignment(const Value& payload) {
  return cadre::from_value<ValidatorAssignment>(payload);
}

const ValidatorAssignment* current_validator() { return present; }

fs::path directory_of_validator(const fs::path& run_directory, const std::string& checkpoint) {
  return run_directory / kValidationsName / fs::path(checkpoint).relative_path();
}

bool detail::register_validator(std::string_view name, ValidatorPointer function) {
  return worker::register_entry(name, [function](channel::WorkerEnd& controller, const Value& payload) {
    return run_validator(controller, payload, [function](const ValidatorAssignment& mine) {
      return function(Checkpoint::from_directory(mine.checkpoint), mine.config);
    });
  });
}

}  // namespace cadre::train
