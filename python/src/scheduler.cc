#include "scheduler.h"

#include <nanobind/stl/string.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cadre/stored.h"
#include "errors.h"
#include "values.h"

namespace nb = nanobind;

namespace cadre::python {
namespace {

nb::dict to_dict(const tune::TrialView& trial) {
  nb::dict state;
  state["index"] = trial.index();
  state["trial_id"] = trial.id();
  state["status"] = to_string(trial.status());
  state["config"] = to_python(trial.config().value());
  state["last_result"] = to_python(trial.last_result().value());
  return state;
}

// The trials, as long as the call of a scheduler lasts.
struct PopulationInCall {
  const tune::Population* population = nullptr;

  const tune::Population& get() const {
    if (population == nullptr) throw InvalidArgument("the trials can be asked for only while the scheduler is called");
    return *population;
  }
};

// A decision of Python's, by the names of tune::Decision.
struct PythonDecision {
  tune::Decision::Kind kind = tune::Decision::Kind::go_on;
  std::vector<tune::TrialIndex> stopped = {};
};

// Calls an object of cadre.tune._told.ToldScheduler, which knows how users' schedulers are called.
class PythonScheduler final : public tune::Scheduler {
 public:
  explicit PythonScheduler(const HostFunction& function)
      : object_(with_python([&] {
          return nb::module_::import_("cadre.tune._told").attr("make_scheduler")(to_python(function.value));
        })) {
    const nb::gil_scoped_acquire gil;
    chooses_ = nb::cast<bool>(object_.attr("chooses"));
  }
  ~PythonScheduler() override {
    const nb::gil_scoped_acquire gil;
    object_.reset();
  }

  void on_trial_add(const tune::TrialView& trial) override {
    with_python([&] { object_.attr("on_trial_add")(to_dict(trial)); });
  }
  tune::Decision on_result(const tune::TrialView& trial, const Metrics& result,
                           const tune::Population& population) override {
    return decide(population, [&](nb::handle view) {
      return object_.attr("on_result")(view, to_dict(trial), to_python(result.value()));
    });
  }
  tune::Decision on_trial_end(const tune::TrialView& trial, const tune::Population& population) override {
    return decide(population, [&](nb::handle view) { return object_.attr("on_trial_end")(view, to_dict(trial)); });
  }
  std::optional<tune::TrialIndex> choose(const tune::Candidates& candidates,
                                         const tune::Population& population) override;
  Value save() const override {
    return with_python([&] { return to_value(object_.attr("save")()); });
  }
  void load(const Value& state) override {
    with_python([&] { object_.attr("load")(to_python(state)); });
  }
  std::string debug_string() const override {
    return with_python([&] { return std::string(nb::str(object_.attr("debug_string")()).c_str()); });
  }

 private:
  // Calls Python with the population, which is valid until that returns.
  static nb::object with_view(const tune::Population& population, const auto& call) {
    const nb::object view = nb::cast(PopulationInCall{&population});
    struct EndOfCall {
      PopulationInCall& view;
      ~EndOfCall() { view.population = nullptr; }
    } const end{nb::cast<PopulationInCall&>(view)};
    return call(view);
  }
  static tune::Decision decide(const tune::Population& population, const auto& call) {
    auto decision = from_value<PythonDecision>(with_python([&] { return to_value(with_view(population, call)); }));
    return {.kind = decision.kind, .stopped = std::move(decision.stopped)};
  }

  nb::object object_;
  bool chooses_ = false;
};

// As Ray's schedulers do, unless Python chooses: pending trials first, then paused ones.
std::optional<tune::TrialIndex> PythonScheduler::choose(const tune::Candidates& candidates,
                                                        const tune::Population& population) {
  if (!chooses_) {
    for (const tune::TrialIndex trial : candidates) {
      if (population.trial(trial).status() == tune::TrialStatus::pending) return trial;
    }
    return candidates.first();
  }
  return with_python([&]() -> std::optional<tune::TrialIndex> {
    nb::list indices;
    for (const tune::TrialIndex trial : candidates) indices.append(trial);
    const nb::object chosen =
        with_view(population, [&](nb::handle view) { return object_.attr("choose")(view, indices); });
    if (chosen.is_none()) return std::nullopt;
    return nb::cast<tune::TrialIndex>(chosen);
  });
}

}  // namespace

std::unique_ptr<tune::Scheduler> make_scheduler(const HostFunction& function) {
  return std::make_unique<PythonScheduler>(function);
}

void bind_scheduler(nb::module_& module) {
  nb::class_<PopulationInCall>(module, "Population")
      .def("trial",
           [](const PopulationInCall& view, tune::TrialIndex index) { return to_dict(view.get().trial(index)); })
      .def("live_trials", [](const PopulationInCall& view) {
        nb::list indices;
        for (const tune::TrialIndex trial : view.get().live_trials()) indices.append(trial);
        return indices;
      });
}

}  // namespace cadre::python
