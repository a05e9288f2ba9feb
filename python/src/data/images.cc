#include "images.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cadre/data.h"
#include "cadre/stored.h"
#include "dataset.h"
#include "errors.h"
#include "exchange.h"
#include "values.h"

namespace nb = nanobind;

namespace cadre::python {

void bind_images(nb::module_& module) {
  nb::class_<data::ImageTransforms>(module, "ImageTransforms")
      .def(nb::new_([](nb::handle steps, nb::handle options) {
        return std::make_unique<data::ImageTransforms>(from_value<std::vector<data::ImageTransform>>(to_value(steps)),
                                                       from_value<data::ImageTransformsOptions>(to_value(options)));
      }))
      .def("__call__", [](const data::ImageTransforms& transforms, nb::handle given, const std::string& column,
                          const std::string& output) {
        const data::Batch batch = to_batch(given);
        return result_of([&] { return PythonBatch{batch.with(output, transforms(batch, column))}; });
      });
  module.def("mix_up", [](nb::handle given, const std::string& images, const std::string& labels, nb::handle options) {
    const data::Batch batch = to_batch(given);
    const auto chosen = from_value<data::MixUpOptions>(to_value(options));
    return result_of([&] { return PythonBatch{data::mix_up(batch, images, labels, chosen)}; });
  });
}

}  // namespace cadre::python
