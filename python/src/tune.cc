#include "tune.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/set.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cadre/stored.h"
#include "cadre/tune.h"
#include "callback.h"
#include "errors.h"
#include "signals.h"
#include "tune/description.h"
#include "values.h"

namespace nb = nanobind;

namespace cadre::python {
namespace {

nb::object path_text(const std::filesystem::path& path) { return to_python(Value(path.string())); }

template <class T>
T named(const std::string& name) {
  return from_value<T>(Value(name));
}

// ---- Results

using Grid = std::shared_ptr<const tune::ResultGrid>;

// The results of an experiment, in the forms of C++; cadre/tune/result_grid.py makes Ray's objects of them.
struct Results {
  Grid grid = {};
  bool is_interrupted = false;
};

nb::dict to_dict(const tune::Result& trial) {
  nb::dict found;
  found["trial_id"] = trial.trial_id;
  found["status"] = to_string(trial.status);
  found["config"] = to_python(trial.config.value());
  found["metrics"] = to_python(trial.metrics.value());
  found["checkpoint"] = trial.checkpoint ? path_text(trial.checkpoint->path()) : nb::none();
  nb::list best;
  for (const auto& [checkpoint, metrics] : trial.best_checkpoints)
    best.append(nb::make_tuple(path_text(checkpoint.path()), to_python(metrics.value())));
  found["best_checkpoints"] = best;
  found["path"] = path_text(trial.path);
  found["error"] = trial.error ? to_python(Value(*trial.error)) : nb::none();
  return found;
}

tune::Objective objective(const std::optional<std::string>& metric) {
  return metric ? tune::Objective(*metric) : tune::Objective();
}

std::optional<Mode> mode_named(const std::optional<std::string>& mode) {
  return mode ? std::optional(named<Mode>(*mode)) : std::nullopt;
}

std::size_t best_index(const Results& results, const std::optional<std::string>& metric,
                       const std::optional<std::string>& mode, const std::string& scope) {
  const tune::ResultGrid& grid = *results.grid;
  const tune::Result& best = grid.get_best_result(objective(metric), mode_named(mode), named<tune::Scope>(scope));
  return static_cast<std::size_t>(&best - &grid[0]);
}

nb::list rows_of(const std::vector<Metrics>& history) {
  nb::list rows;
  for (const Metrics& metrics : history) rows.append(to_python(metrics.value()));
  return rows;
}

void bind_results(nb::module_& module) {
  nb::class_<Results>(module, "Results")
      .def("__len__", [](const Results& results) { return results.grid->size(); })
      .def("trial", [](const Results& results, std::size_t index) { return to_dict((*results.grid)[index]); })
      .def("history",
           [](const Results& results, std::size_t index) {
             std::vector<Metrics> history;
             with_cadre([&] { history = (*results.grid)[index].metrics_history(); });
             return rows_of(history);
           })
      .def("config_at", [](const Results& results, std::size_t index,
                           std::size_t row) { return to_python((*results.grid)[index].config_at(row).value()); })
      .def("best_index", &best_index, nb::arg("metric").none(), nb::arg("mode").none(), nb::arg("scope"))
      .def("scores", [](const Results& results, const std::string& metric,
                        const std::string& scope) { return results.grid->scores(metric, named<tune::Scope>(scope)); })
      .def("pareto_front",
           [](const Results& results, const std::vector<std::pair<std::string, std::string>>& metrics,
              const std::string& scope) {
             std::vector<tune::Objective> objectives;
             for (const auto& [metric, mode] : metrics) objectives.emplace_back(metric, named<Mode>(mode));
             return results.grid->pareto_front(objectives, named<tune::Scope>(scope));
           })
      .def_prop_ro("experiment_path", [](const Results& results) { return path_text(results.grid->experiment_path()); })
      .def_prop_ro("options", [](const Results& results) { return to_python(results.grid->summary().options.value()); })
      .def_prop_ro("metric", [](const Results& results) { return results.grid->summary().metric; })
      .def_prop_ro("mode",
                   [](const Results& results) -> nb::object {
                     const std::optional<Mode> mode = results.grid->summary().mode;
                     return mode ? to_python(to_stored(*mode)) : nb::none();
                   })
      .def_prop_ro("state", [](const Results& results) { return to_string(results.grid->summary().state); })
      .def_ro("is_interrupted", &Results::is_interrupted)
      .def_prop_ro("num_errors", [](const Results& results) { return results.grid->num_errors(); })
      .def_prop_ro("num_terminated", [](const Results& results) { return results.grid->num_terminated(); })
      .def_prop_ro("num_stopped", [](const Results& results) { return results.grid->num_stopped(); });
  module.def("read_results", [](const std::string& directory) {
    Results results;
    with_cadre(
        [&] { results.grid = std::make_shared<const tune::ResultGrid>(tune::ResultGrid::from_directory(directory)); });
    return results;
  });
}

// ---- Experiments

// A Tuner, and the callback that hears of its experiment.
struct PythonTuner {
  std::shared_ptr<PythonCallback> callback;
  std::unique_ptr<tune::Tuner> tuner;
};

PythonTuner make_tuner(nb::handle description, const std::string& name, const std::string& storage_path,
                       const std::string& if_exists, nb::handle publish, nb::object callbacks,
                       std::set<std::string> hooks) {
  tune::Description all = tune::to_description(to_value(description));
  tune::RunConfig& run = all.options.run_config;
  run.name = name;
  run.storage_path = storage_path;
  run.if_exists = named<IfExists>(if_exists);
  run.publish_config = from_value<PublishConfig>(to_value(publish));
  auto callback = std::make_shared<PythonCallback>(std::move(callbacks), std::move(hooks));
  run.callbacks.push_back(callback);
  return {callback, std::make_unique<tune::Tuner>(std::move(all.trainable), std::move(all.options))};
}

PythonTuner restore_tuner(const std::string& directory, nb::handle function, bool resume_errored, bool restart_errored,
                          bool allow_divergence, nb::handle extension, nb::handle publish, nb::object callbacks,
                          std::set<std::string> hooks) {
  auto callback = std::make_shared<PythonCallback>(std::move(callbacks), std::move(hooks));
  std::unique_ptr<tune::Tuner> tuner;
  const HostFunction host_function{to_value(function)};
  const auto extend = from_value<tune::Extension>(to_value(extension));
  const auto publish_config = from_value<PublishConfig>(to_value(publish));
  with_cadre([&] {
    tuner = std::make_unique<tune::Tuner>(tune::Tuner::restore(directory, {.resume_errored = resume_errored,
                                                                           .restart_errored = restart_errored,
                                                                           .allow_divergence = allow_divergence,
                                                                           .host_function = host_function,
                                                                           .extend = extend,
                                                                           .callbacks = {callback},
                                                                           .publish_config = publish_config}));
  });
  return {callback, std::move(tuner)};
}

Results fit(PythonTuner& python, bool takes_signals) {
  const InterruptibleBySignals interruptible(takes_signals);
  Results results;
  with_cadre([&] {
    try {
      results.grid = std::make_shared<const tune::ResultGrid>(python.tuner->fit());
    } catch (const Interrupted&) {
      if (python.callback->experiment().empty()) throw;
      results = {
          std::make_shared<const tune::ResultGrid>(tune::ResultGrid::from_directory(python.callback->experiment())),
          true};
    }
  });
  return results;
}

}  // namespace

void bind_tune(nb::module_& module) {
  bind_results(module);
  nb::class_<PythonTuner>(module, "Tuner").def("fit", &fit, nb::arg("takes_signals"));
  module.def("make_tuner", &make_tuner, nb::arg("description"), nb::arg("name"), nb::arg("storage_path"),
             nb::arg("if_exists"), nb::arg("publish"), nb::arg("callbacks").none(), nb::arg("hooks"),
             "Makes a Tuner of options in the form in which they are stored: docs/formats.md, \"The stored options\".");
  module.def("restore_tuner", &restore_tuner, nb::arg("directory"), nb::arg("function").none(),
             nb::arg("resume_errored"), nb::arg("restart_errored"), nb::arg("allow_divergence"), nb::arg("extension"),
             nb::arg("publish"), nb::arg("callbacks").none(), nb::arg("hooks"));
  module.def("can_restore", [](const std::string& directory, nb::handle publish) {
    const auto publish_config = from_value<PublishConfig>(to_value(publish));
    return result_of([&] { return tune::Tuner::can_restore(directory, publish_config); });
  });
}

}  // namespace cadre::python
