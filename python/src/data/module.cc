// The extension cadre._data: cadre::data for the package's Python. It has no core of its own: what belongs to the
// process (the host, the object store, the session of a worker) is cadre._core's.
#include <nanobind/nanobind.h>

#include "dataset.h"
#include "functions.h"
#include "images.h"
#include "sources.h"

NB_MODULE(_data, module) {
  module.doc() = "Cadre's datasets. Programs use the package cadre.data, of which this is a part.";
  cadre::python::bind_datasets(module);
  cadre::python::bind_sources(module);
  cadre::python::bind_images(module);
  cadre::python::serve_functions();
}
