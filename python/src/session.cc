#include "session.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <filesystem>
#include <optional>
#include <string>

#include "cadre/stored.h"
#include "cadre/tune/session.h"
#include "errors.h"
#include "values.h"

namespace nb = nanobind;

namespace cadre::python {
namespace {

void report(nb::handle metrics, const std::optional<std::string>& checkpoint) {
  const Metrics row(to_config(metrics).dict());
  with_cadre([&] {
    if (checkpoint) {
      tune::report(row, Checkpoint::from_directory(*checkpoint));
    } else {
      tune::report(row);
    }
  });
}

// Reports with a checkpoint that `write` fills when one is wanted.
void report_offering(nb::handle metrics, const nb::object& write) {
  const Metrics row(to_config(metrics).dict());
  with_cadre([&] {
    tune::report(row, [&](const std::filesystem::path& directory) {
      with_python([&] { write(to_python(Value(directory.string()))); });
    });
  });
}

std::optional<std::string> checkpoint_path() {
  std::optional<std::string> path;
  with_cadre([&] {
    if (const std::optional<Checkpoint> checkpoint = tune::get_checkpoint())
      path = checkpoint->as_directory().path().string();
  });
  return path;
}

// Returns a checkpoint's files on this machine: what had to be brought is removed with the object.
Checkpoint::Reading read_checkpoint(const std::string& path) {
  return result_of([&] { return Checkpoint::from_directory(path).as_directory(); });
}

}  // namespace

void bind_session(nb::module_& module) {
  module.def("report", &report, nb::arg("metrics"), nb::arg("checkpoint") = nb::none());
  module.def("report_offering", &report_offering, nb::arg("metrics"), nb::arg("write"));
  module.def("checkpoint_path", &checkpoint_path);
  nb::class_<Checkpoint::Reading>(module, "CheckpointReading")
      .def_prop_ro("path", [](const Checkpoint::Reading& reading) { return reading.path().string(); });
  module.def("read_checkpoint", &read_checkpoint, nb::arg("path"));
  module.def("experiment_name", [] { return tune::get_context().get_experiment_name(); });
  module.def("trial_id", [] { return tune::get_context().get_trial_id(); });
  module.def("trial_name", [] { return tune::get_context().get_trial_name(); });
  module.def("trial_dir", [] { return tune::get_context().get_trial_dir().string(); });
  module.def("trial_resources", [] { return to_python(to_stored(tune::get_context().get_trial_resources())); });
  module.def("trial_seed", [] { return tune::get_context().get_seed(); });
}

}  // namespace cadre::python
