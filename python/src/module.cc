// The extension cadre._core: cadre::tune for the package's Python.
#include <nanobind/nanobind.h>

#include "cadre/version.h"
#include "environment.h"
#include "errors.h"
#include "host.h"
#include "scheduler.h"
#include "session.h"
#include "train.h"
#include "tune.h"
#include "values.h"

// The version of Arrow for which cadre._data is built; empty if it is not.
#ifndef CADRE_ARROW_VERSION
#define CADRE_ARROW_VERSION ""
#endif

NB_MODULE(_core, module) {
  module.attr("__version__") = cadre::version();
  module.attr("arrow_version") = CADRE_ARROW_VERSION;
  module.doc() = "Cadre's core. Programs use the package cadre, of which this is a part.";
  cadre::python::bind_errors(module);
  cadre::python::bind_values(module);
  cadre::python::bind_host(module);
  cadre::python::bind_environment(module);
  cadre::python::bind_session(module);
  cadre::python::bind_scheduler(module);
  cadre::python::bind_tune(module);
  cadre::python::bind_train(module);
}
