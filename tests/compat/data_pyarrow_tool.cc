// Reads files with cadre::data, for a comparison with pyarrow.
//
//   data_pyarrow_tool aggregate <folder> <options as JSON>           aggregates of every column, as JSON
//   data_pyarrow_tool rows <folder> <options as JSON>                number of rows without columns, by operator
//   data_pyarrow_tool tensors <folder> <options as JSON>             shape, type and numbers of every column, as JSON
//   data_pyarrow_tool copy <folder> <options as JSON> <new folder>   writes the rows as Parquet
//
// Options: "columns", a list; "filter", a condition as Expression stores it, and "filter_behind", a condition that is
// not part of the read; "skip"; "limit"; "shuffle"; "memory_limit_bytes"; "num_threads"; "ignore_nan"; "ignore_nulls";
// "row_group".
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "cadre/data.h"
#include "cadre/error.h"

namespace {

using cadre::Config;
using cadre::Dict;
using cadre::fn;
using cadre::Value;
namespace data = cadre::data;

data::Batch same(const data::Batch& batch) { return batch; }

data::Dataset open(const std::string& folder, const Config& options) {
  data::ParquetOptions parquet;
  if (const Value* columns = options.find("columns")) parquet.columns = columns->get<std::vector<std::string>>();
  if (const Value* filter = options.find("filter")) parquet.filter = data::Expression::from_value(*filter);
  data::ExecutionOptions execution{.function_place = data::FunctionPlace::threads};
  if (options.contains("memory_limit_bytes"))
    execution.memory_limit_bytes = options.get<std::int64_t>("memory_limit_bytes");
  if (options.contains("num_threads")) execution.num_threads = options.get<std::int64_t>("num_threads");
  data::Dataset dataset = data::read_parquet(folder, parquet).with_options(execution);
  if (const Value* filter = options.find("filter_behind"))
    dataset = dataset.map_batches(fn<same>).filter(data::Expression::from_value(*filter));
  if (options.contains("skip")) dataset = dataset.skip(options.get<std::int64_t>("skip"));
  if (options.contains("limit")) dataset = dataset.limit(options.get<std::int64_t>("limit"));
  if (options.contains("shuffle")) dataset = dataset.random_shuffle(options.get<std::uint64_t>("shuffle"));
  return dataset;
}

bool starts_with_any(std::string_view type, std::initializer_list<std::string_view> beginnings) {
  for (const std::string_view beginning : beginnings) {
    if (type.starts_with(beginning)) return true;
  }
  return false;
}

Value aggregates(const data::Dataset& dataset, const Config& options) {
  const data::AggregateOptions how{.ignore_nulls = options.get<bool>("ignore_nulls", true),
                                   .ignore_nan = options.get<bool>("ignore_nan", false)};
  Dict all{{"rows", dataset.count()}};
  for (const auto& [name, type] : dataset.schema().fields) {
    std::vector<data::Aggregate> wanted{data::count(name)};
    const bool is_number = starts_with_any(type, {"int", "uint", "float", "halffloat", "double", "bool", "decimal"});
    if (is_number || starts_with_any(type, {"string", "large_string", "timestamp", "date", "time", "dictionary"}))
      wanted.insert(wanted.end(), {data::min(name), data::max(name)});
    if (is_number && name != "huge") wanted.insert(wanted.end(), {data::sum(name), data::mean(name), data::std(name)});
    for (const auto& [what, value] : dataset.aggregate(wanted, how)) all.emplace_back(what, value);
  }
  return all;
}

Value rows(const data::Dataset& dataset) {
  const data::Dataset bare = dataset.select_columns({});
  std::int64_t in_batches = 0;
  for (const data::Batch& batch : bare.iter_batches({.batch_size = 7})) in_batches += batch.num_rows();
  std::int64_t in_parts = 0;
  for (const data::Dataset& part : bare.split(3)) in_parts += std::ssize(part.take_all());
  return Dict{{"count", bare.count()},
              {"batches", in_batches},
              {"parts", in_parts},
              {"shuffled", std::ssize(bare.random_shuffle(1).take_all())},
              {"mapped", std::ssize(bare.map_batches(fn<same>).take_all())},
              {"materialized", bare.materialize().count()}};
}

Value tensors(const data::Dataset& dataset) {
  const data::Batch batch = dataset.take_batch(1000);
  Dict all;
  for (const std::string& column : batch.columns()) {
    cadre::List shape;
    for (const std::int64_t width : batch.row_shape(column)) shape.emplace_back(width);
    cadre::List numbers;
    for (const double number : batch.to_vector<double>(column)) numbers.emplace_back(number);
    all.emplace_back(column, Dict{{"shape", shape}, {"type", batch.number_type(column)}, {"numbers", numbers}});
  }
  return all;
}

int run(const std::vector<std::string>& arguments) {
  if (arguments.size() < 3)
    throw cadre::InvalidArgument("usage: data_pyarrow_tool aggregate|rows|tensors|copy <folder> <options> ...");
  const Config options(cadre::base::parse_json(arguments[2], "the options"));
  const data::Dataset dataset = open(arguments[1], options);
  if (arguments[0] == "aggregate") {
    std::puts(cadre::to_json(aggregates(dataset, options)).c_str());
  } else if (arguments[0] == "rows") {
    std::puts(cadre::to_json(rows(dataset)).c_str());
  } else if (arguments[0] == "tensors") {
    std::puts(cadre::to_json(tensors(dataset)).c_str());
  } else {
    dataset.write_parquet(
        arguments.at(3), {.max_rows_per_file = 700, .rows_per_row_group = options.get<std::int64_t>("row_group", 101)});
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
