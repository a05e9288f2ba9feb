#include "dataset.h"

#include <arrow/record_batch.h>
#include <arrow/type.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "cadre/data.h"
#include "cadre/stored.h"
#include "data/execution.h"
#include "data/plan.h"
#include "errors.h"
#include "exchange.h"
#include "values.h"

namespace nb = nanobind;

namespace cadre::python {
namespace {

using data::detail::PlanAccess;

// ---- Loops

// The position in a loop over batches. Its threads may wait for the interpreter, so it ends without the GIL.
class Loop {
 public:
  explicit Loop(data::Batches batches) : batches_(std::move(batches)) {}
  ~Loop() {
    const nb::gil_scoped_release no_gil;
    position_.reset();
  }
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  // Raises StopIteration at the end.
  PythonBatch next() {
    std::optional<data::Batch> batch;
    with_cadre([&] {
      if (position_) {
        ++*position_;
      } else {
        position_.emplace(batches_.begin());
      }
      if (*position_ != batches_.end()) batch = **position_;
    });
    if (!batch) throw nb::stop_iteration();
    return {*std::move(batch)};
  }

 private:
  data::Batches batches_;
  std::optional<data::Batches::Iterator> position_ = {};
};

data::IterBatchesOptions options_of(std::optional<std::int64_t> batch_size, bool drop_last, std::int64_t prefetch,
                                    std::optional<std::int64_t> shuffle_buffer, std::uint64_t shuffle_seed,
                                    std::uint64_t epoch) {
  return {.batch_size = batch_size,
          .drop_last = drop_last,
          .prefetch_batches = prefetch,
          .local_shuffle_buffer_size = shuffle_buffer,
          .local_shuffle_seed = shuffle_seed,
          .epoch = epoch};
}

// `epoch`: 0 for a shard.
template <class Rows>
std::unique_ptr<Loop> iterate(const Rows& rows, std::optional<std::int64_t> batch_size, bool drop_last,
                              std::int64_t prefetch, std::optional<std::int64_t> shuffle_buffer,
                              std::uint64_t shuffle_seed, std::uint64_t epoch) {
  return std::make_unique<Loop>(
      rows.iter_batches(options_of(batch_size, drop_last, prefetch, shuffle_buffer, shuffle_seed, epoch)));
}

// ---- Datasets

data::Dataset to_dataset(nb::handle stored) {
  const Value value = to_value(stored);
  return result_of([&] { return data::Dataset(value); });
}

nb::object to_stored_value(const data::Dataset& dataset) {
  return to_python(result_of([&] { return Value(dataset); }));
}

// Returns the dataset with a call of a function of Python; `kind` is one of data::Call.
data::Dataset append_call(const data::Dataset& dataset, const std::string& kind, const std::string& name,
                          nb::handle function, std::optional<std::int64_t> batch_size,
                          std::optional<std::int64_t> concurrency, double num_cpus, double num_gpus) {
  const data::MapBatchesOptions options{
      .batch_size = batch_size, .concurrency = concurrency, .num_cpus = num_cpus, .num_gpus = num_gpus};
  const data::MapOptions row_options{.concurrency = concurrency, .num_cpus = num_cpus};
  const auto named = [&, host_function = HostFunction{to_value(function)}](auto of_host) {
    of_host.name = name;
    of_host.host_function = host_function;
    return of_host;
  };
  if (kind == "class") return dataset.map_batches(named(data::Actor()), options);
  if (kind == "row function") return dataset.map(named(data::RowFunction()), row_options);
  if (kind == "row predicate") return dataset.filter(named(data::RowPredicate()), row_options);
  return dataset.map_batches(named(data::BatchFunction()), options);
}

// Returns the dataset with a call of a function of Python for each group of rows with equal keys.
data::Dataset map_groups(const data::Dataset& dataset, const std::vector<std::string>& keys, bool is_class,
                         const std::string& name, nb::handle function, std::optional<std::int64_t> concurrency,
                         double num_cpus, double num_gpus) {
  const HostFunction host_function{to_value(function)};
  const data::MapBatchesOptions options{.concurrency = concurrency, .num_cpus = num_cpus, .num_gpus = num_gpus};
  const data::GroupedData groups = dataset.groupby(keys);
  if (is_class) return groups.map_groups(data::Actor{.name = name, .host_function = host_function}, options);
  data::BatchFunction called(name);
  called.host_function = host_function;
  return groups.map_groups(called, options);
}

data::Dataset join(const data::Dataset& left, const data::Dataset& right, const std::string& type, nb::handle options) {
  return left.join(right, from_value<data::JoinType>(Value(type)), from_value<data::JoinOptions>(to_value(options)));
}

// `test`: a number of rows, or a part of them.
std::pair<data::Dataset, data::Dataset> train_test_split(const data::Dataset& dataset, nb::handle test, bool shuffle,
                                                         std::uint64_t seed, const std::string& stratify) {
  const Value size = to_value(test);
  return result_of([&] {
    const data::TrainTestSplitOptions options{.shuffle = shuffle, .seed = seed, .stratify = stratify};
    return size.is_integer() ? dataset.train_test_split(size.get<std::int64_t>(), options)
                             : dataset.train_test_split(size.get<double>(), options);
  });
}

bool has_functions(const data::Node& node) {
  return std::holds_alternative<data::Call>(node.operation) ||
         std::ranges::any_of(node.inputs, [](const data::NodePtr& input) { return has_functions(*input); });
}

bool can_be_shared(const data::Dataset& dataset) {
  return result_of([&] {
    try {
      static_cast<void>(data::shared_source(data::push_down(PlanAccess::plan(dataset).node)));
      return true;
    } catch (const InvalidArgument&) {
      return false;
    }
  });
}

// Returns None for a dataset without columns.
nb::object schema_of(const data::Dataset& dataset) {
  const auto schema = result_of([&] {
    data::Execution execution(PlanAccess::plan(dataset));
    std::shared_ptr<arrow::Schema> known = execution.schema();
    if (known == nullptr) {
      if (const auto block = execution.next()) known = (*block)->schema();
    }
    return known;
  });
  if (schema == nullptr || schema->num_fields() == 0) return nb::none();
  return schema_capsule(*schema);
}

std::vector<data::Aggregate> to_aggregates(nb::handle aggregates) {
  return from_value<std::vector<data::Aggregate>>(to_value(aggregates));
}

data::AggregateOptions to_aggregate_options(nb::handle options) {
  return from_value<data::AggregateOptions>(to_value(options));
}

nb::object aggregate(const data::Dataset& dataset, nb::handle aggregates, nb::handle options) {
  const auto wanted = to_aggregates(aggregates);
  const auto chosen = to_aggregate_options(options);
  return to_python(result_of([&] { return dataset.aggregate(wanted, chosen); }).value());
}

// Writes files by one of the dataset's functions, and returns their paths.
template <class Options>
auto writer(std::vector<std::filesystem::path> (data::Dataset::*write)(const std::filesystem::path&, const Options&)
                const) {
  return [write](const data::Dataset& dataset, const std::string& folder, nb::handle options) {
    const auto chosen = from_value<Options>(to_value(options));
    std::vector<std::string> files;
    for (const auto& file : result_of([&] { return (dataset.*write)(folder, chosen); })) files.push_back(file.string());
    return files;
  };
}

void bind_dataset(nb::module_& module) {
  nb::class_<data::Dataset>(module, "Dataset")
      .def_static("from_stored", &to_dataset)
      .def("to_stored", &to_stored_value)
      .def("append_call", &append_call, nb::arg("kind"), nb::arg("name"), nb::arg("function"),
           nb::arg("batch_size").none(), nb::arg("concurrency").none(), nb::arg("num_cpus"), nb::arg("num_gpus"))
      .def("filter",
           [](const data::Dataset& dataset, nb::handle condition) {
             return dataset.filter(data::Expression::from_value(to_value(condition)));
           })
      .def("select_columns", &data::Dataset::select_columns)
      .def("rename_columns", &data::Dataset::rename_columns)
      .def("limit", &data::Dataset::limit)
      .def("skip", &data::Dataset::skip)
      .def("concat",
           [](const data::Dataset& rows, const std::vector<data::Dataset>& others) { return rows.concat(others); })
      .def("random_shuffle", &data::Dataset::random_shuffle)
      .def("random_sample", &data::Dataset::random_sample)
      .def("sort",
           [](const data::Dataset& rows, const std::vector<std::pair<std::string, bool>>& keys) {
             std::vector<data::SortKey> order;
             for (const auto& [column, descending] : keys) order.emplace_back(column, descending);
             return rows.sort(order);
           })
      .def("group",
           [](const data::Dataset& rows, const std::vector<std::string>& keys, nb::handle aggregates,
              nb::handle options) {
             return rows.groupby(keys).aggregate(to_aggregates(aggregates), to_aggregate_options(options));
           })
      .def("map_groups", &map_groups, nb::arg("keys"), nb::arg("is_class"), nb::arg("name"), nb::arg("function"),
           nb::arg("concurrency").none(), nb::arg("num_cpus"), nb::arg("num_gpus"))
      .def("join", &join)
      .def("zip", [](const data::Dataset& rows, const std::vector<data::Dataset>& others) { return rows.zip(others); })
      .def("train_test_split", &train_test_split, nb::arg("test"), nb::arg("shuffle"), nb::arg("seed"),
           nb::arg("stratify"))
      .def("with_row_numbers",
           [](const data::Dataset& rows, const std::string& column) { return data::with_row_numbers(rows, column); })
      .def("materialize", [](const data::Dataset& dataset) { return result_of([&] { return dataset.materialize(); }); })
      .def("with_name",
           [](data::Dataset dataset, const std::string& name) {
             dataset.set_name(name);
             return dataset;
           })
      .def_prop_ro("name", &data::Dataset::name)
      .def("with_options",
           [](const data::Dataset& dataset, nb::handle options) {
             return dataset.with_options(from_value<data::ExecutionOptions>(to_value(options)));
           })
      .def("options", [](const data::Dataset& dataset) { return to_python(to_stored(dataset.options())); })
      .def("has_functions", [](const data::Dataset& dataset) { return has_functions(*PlanAccess::plan(dataset).node); })
      .def("can_be_shared", &can_be_shared)
      .def("keeps_rows",
           [](const data::Dataset& dataset) {
             return data::keeps_rows(data::push_down(PlanAccess::plan(dataset).node));
           })
      .def("schema", &schema_of)
      .def("count", [](const data::Dataset& dataset) { return result_of([&] { return dataset.count(); }); })
      .def("size_bytes", [](const data::Dataset& dataset) { return result_of([&] { return dataset.size_bytes(); }); })
      .def("aggregate", &aggregate)
      .def("iterate", &iterate<data::Dataset>, nb::arg("batch_size").none(), nb::arg("drop_last"), nb::arg("prefetch"),
           nb::arg("shuffle_buffer").none(), nb::arg("shuffle_seed"), nb::arg("epoch") = 0)
      .def("shard", [](const data::Dataset& dataset, std::int64_t rank, std::int64_t world_size,
                       bool equal) { return dataset.shard({.rank = rank, .world_size = world_size, .equal = equal}); })
      .def("write_parquet", writer(&data::Dataset::write_parquet))
      .def("write_csv", writer(&data::Dataset::write_csv))
      .def("write_json", writer(&data::Dataset::write_json))
      .def("stats", [](const data::Dataset& dataset) -> nb::object {
        const auto stats = dataset.stats();
        return stats ? to_python(Value(to_string(*stats))) : nb::none();
      });
}

void bind_shard(nb::module_& module) {
  nb::class_<data::Shard>(module, "Shard")
      .def("size", [](const data::Shard& shard) { return result_of([&] { return shard.size(); }); })
      .def_prop_ro("epoch", &data::Shard::epoch)
      .def("set_epoch", [](data::Shard& shard, std::uint64_t epoch) { with_cadre([&] { shard.set_epoch(epoch); }); })
      .def("position", [](const data::Shard& shard) { return to_python(result_of([&] { return shard.position(); })); })
      .def("set_position",
           [](data::Shard& shard, nb::handle position) {
             const Value value = to_value(position);
             with_cadre([&] { shard.set_position(value); });
           })
      .def("iterate", &iterate<data::Shard>, nb::arg("batch_size").none(), nb::arg("drop_last"), nb::arg("prefetch"),
           nb::arg("shuffle_buffer").none(), nb::arg("shuffle_seed"), nb::arg("epoch") = 0);
}

}  // namespace

void bind_datasets(nb::module_& module) {
  nb::exception<data::DatasetError>(module, "DatasetError", nb::module_::import_("cadre._core").attr("CadreError"));
  nb::class_<PythonBatch>(module, "Batch", "Rows, for pyarrow.record_batch().")
      .def("__len__", [](const PythonBatch& batch) { return batch.batch.num_rows(); })
      .def(
          "__arrow_c_array__", [](const PythonBatch& batch, nb::handle) { return array_capsules(batch.batch); },
          nb::arg("requested_schema") = nb::none());
  nb::class_<Loop>(module, "Loop")
      .def("__iter__", [](nb::handle self) { return nb::borrow(self); })
      .def("__next__", &Loop::next);
  bind_dataset(module);
  bind_shard(module);
}

}  // namespace cadre::python
