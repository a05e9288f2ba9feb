// What cadre::data makes of files, for a comparison with pyarrow.
//
//   data_pyarrow_tool aggregate <folder> <options as JSON>   the aggregates of every column, as JSON
//   data_pyarrow_tool copy <folder> <options as JSON> <new folder>   the rows, written as Parquet
//
// Options: "columns", a list; "filter", {"column", "greater"}; "memory_limit_bytes"; "ignore_nan"; "shuffle".
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
using cadre::Value;
namespace data = cadre::data;

data::Dataset open(const std::string& folder, const Config& options) {
  data::ParquetOptions parquet;
  if (const Value* columns = options.find("columns")) parquet.columns = columns->get<std::vector<std::string>>();
  if (options.contains("filter"))
    parquet.filter = data::column(options.get<std::string>("filter/column")) > options.get<double>("filter/greater");
  data::ExecutionOptions execution{.function_place = data::FunctionPlace::threads};
  if (options.contains("memory_limit_bytes"))
    execution.memory_limit_bytes = options.get<std::int64_t>("memory_limit_bytes");
  return data::read_parquet(folder, parquet).with_options(execution);
}

Value aggregates(const data::Dataset& dataset, const Config& options) {
  const data::AggregateOptions how{.ignore_nan = options.get<bool>("ignore_nan", false)};
  Dict all{{"rows", dataset.count()}};
  for (const data::Field& field : dataset.schema().fields) {
    std::vector<data::Aggregate> wanted{data::count(field.name), data::min(field.name), data::max(field.name)};
    if (field.type != "string")
      wanted.insert(wanted.end(), {data::sum(field.name), data::mean(field.name), data::std(field.name)});
    for (const auto& [name, value] : dataset.aggregate(wanted, how)) all.emplace_back(name, value);
  }
  return all;
}

int run(const std::vector<std::string>& arguments) {
  if (arguments.size() < 3)
    throw cadre::InvalidArgument("usage: data_pyarrow_tool aggregate|copy <folder> <options> ...");
  const Config options(cadre::base::parse_json(arguments[2], "the options"));
  data::Dataset dataset = open(arguments[1], options);
  if (arguments[0] == "aggregate") {
    std::puts(cadre::to_json(aggregates(dataset, options)).c_str());
  } else {
    if (options.contains("shuffle")) dataset = dataset.random_shuffle(options.get<std::uint64_t>("shuffle"));
    dataset.write_parquet(arguments.at(3), {.max_rows_per_file = 700, .rows_per_row_group = 101});
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
