// Changes of the images of batches.
#pragma once

#include <nanobind/nanobind.h>

namespace cadre::python {

// Adds ImageTransforms and mix_up to the module, which has Batch already.
void bind_images(nanobind::module_& module);

}  // namespace cadre::python
