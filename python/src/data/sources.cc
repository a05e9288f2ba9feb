#include "sources.h"

#include <arrow/table.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cadre/data.h"
#include "cadre/stored.h"
#include "errors.h"
#include "exchange.h"
#include "train/session.h"
#include "values.h"

namespace nb = nanobind;

namespace cadre::python {
namespace {

using Paths = std::vector<std::string>;

// Returns a function of paths and a dictionary of the options that are not the default.
template <class Options>
auto reader(data::Dataset (*read)(const Paths&, const Options&)) {
  return [read](const Paths& paths, nb::handle options) {
    const auto chosen = from_value<Options>(to_value(options));
    return result_of([&] { return read(paths, chosen); });
  };
}

// Returns a dataset of the training run that this process is a worker of.
data::Dataset run_dataset(const std::string& name) {
  const train::Session* const session = train::Session::current();
  if (session == nullptr || !session->assignment().datasets.contains(name))
    throw NotFound("the run has no dataset \"" + name + "\"");
  return result_of([&] { return data::Dataset(session->assignment().datasets.at(name)); });
}

}  // namespace

void bind_sources(nb::module_& module) {
  using Types = std::vector<std::pair<std::string, std::string>>;
  module.def(
      "read_parquet",
      [](const Paths& paths, const std::vector<std::string>& columns, nb::handle filter, bool hive_partitioning) {
        data::ParquetOptions options{.columns = columns, .hive_partitioning = hive_partitioning};
        if (!filter.is_none()) options.filter = data::Expression::from_value(to_value(filter));
        return result_of([&] { return data::read_parquet(paths, options); });
      },
      nb::arg("paths"), nb::arg("columns"), nb::arg("filter").none(), nb::arg("hive_partitioning"));
  module.def(
      "read_csv",
      [](const Paths& paths, const std::string& delimiter, const std::vector<std::string>& column_names,
         const std::vector<std::string>& columns, const Types& types, bool hive_partitioning) {
        if (delimiter.size() != 1)
          throw InvalidArgument("read_csv: the delimiter \"" + delimiter + "\" is not one character");
        const data::CsvOptions options{.delimiter = delimiter.front(),
                                       .column_names = column_names,
                                       .columns = columns,
                                       .types = types,
                                       .hive_partitioning = hive_partitioning};
        return result_of([&] { return data::read_csv(paths, options); });
      },
      nb::arg("paths"), nb::arg("delimiter"), nb::arg("column_names"), nb::arg("columns"), nb::arg("types"),
      nb::arg("hive_partitioning"));
  module.def(
      "read_json",
      [](const Paths& paths, const std::vector<std::string>& columns, const Types& types, bool hive_partitioning) {
        const data::JsonOptions options{.columns = columns, .types = types, .hive_partitioning = hive_partitioning};
        return result_of([&] { return data::read_json(paths, options); });
      },
      nb::arg("paths"), nb::arg("columns"), nb::arg("types"), nb::arg("hive_partitioning"));
  module.def("read_images", reader<data::ImageOptions>(&data::read_images));
  module.def("read_binary_files", reader<data::BinaryFilesOptions>(&data::read_binary_files));
  module.def("read_text", reader<data::TextOptions>(&data::read_text));
  module.def("read_numpy", reader<data::NumpyOptions>(&data::read_numpy));
  module.def("read_tfrecords", reader<data::TfRecordsOptions>(&data::read_tfrecords));
  module.def("read_webdataset", reader<data::WebDatasetOptions>(&data::read_webdataset));
  module.def("from_arrow", [](nb::handle table) {
    const auto taken = to_table(table);
    return data::from_arrow(taken);
  });
  module.def("range", &data::range);
  module.def("run_dataset", &run_dataset);
  module.def(
      "run_shard",
      [](const std::string& name, bool equal, bool shuffle, std::uint64_t seed) {
        return result_of(
            [&] { return data::get_dataset_shard(name, {.equal = equal, .shuffle = shuffle, .seed = seed}); });
      },
      nb::arg("name"), nb::arg("equal"), nb::arg("shuffle"), nb::arg("seed"));
}

}  // namespace cadre::python
