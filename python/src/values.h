// Values of Cadre as objects of Python, and back.
#pragma once

#include <nanobind/nanobind.h>

#include "cadre/object.h"
#include "cadre/value.h"

// Visible to cadre._data, which has no core of its own.
#define CADRE_EXPORTED __attribute__((visibility("default")))

namespace cadre::python {

// Returns a Python object as a Value: None, bool, int, float, str, lists and tuples, dictionaries, ObjectRefs, and what
// has the item() of a number of numpy or of a tensor. Raises TypeError, or OverflowError for an integer beyond 64 bits,
// with the path to what cannot be stored. The GIL must be held, here and below.
CADRE_EXPORTED Value to_value(nanobind::handle object);
// Returns a dictionary as a Config or Metrics. Raises TypeError for anything else.
CADRE_EXPORTED Config to_config(nanobind::handle object);
// Returns new objects; a reference becomes an ObjectRef.
CADRE_EXPORTED nanobind::object to_python(const Value& value);

// Adds ObjectRef to the module.
void bind_values(nanobind::module_& module);

}  // namespace cadre::python
