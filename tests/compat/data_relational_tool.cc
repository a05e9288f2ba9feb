// Operators that combine rows, for comparisons with pyarrow and Ray Data:
//
//   data_relational_tool <operation> <options as JSON> <folder of Parquet files> <new folder or file>
//
// Operations: "sort" with "keys" and "descending"; "groupby" with "keys" and "aggregates", pairs of a kind and a
// column; "join" with "other", a folder, "kind", "on", "right_on", "left_suffix" and "right_suffix"; "zip" with
// "other"; "train" and "test" with "test_size"; "unique" with "column", which writes JSON to stdout; "csv" and "json",
// which write such files. All others write Parquet. "memory_limit_bytes" limits the memory.
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "cadre/data.h"
#include "cadre/error.h"

namespace {

using cadre::Config;
using cadre::Value;
namespace data = cadre::data;
using Names = std::vector<std::string>;

data::Dataset open(const std::string& folder, const Config& options) {
  data::ExecutionOptions execution{.num_threads = 2, .function_place = data::FunctionPlace::threads};
  if (options.contains("memory_limit_bytes"))
    execution.memory_limit_bytes = options.get<std::int64_t>("memory_limit_bytes");
  return data::read_parquet(folder).with_options(execution);
}

data::Dataset sort(const data::Dataset& rows, const Config& options) {
  const auto names = options.get<Names>("keys");
  const auto descending = options.get<std::vector<bool>>("descending");
  std::vector<data::SortKey> keys;
  for (std::size_t i = 0; i < names.size(); ++i) keys.emplace_back(names[i], descending.at(i));
  return rows.sort(keys);
}

data::Aggregate aggregate(const std::string& kind, const std::string& column) {
  if (kind == "count") return column.empty() ? data::count() : data::count(column);
  if (kind == "sum") return data::sum(column);
  if (kind == "min") return data::min(column);
  if (kind == "max") return data::max(column);
  if (kind == "median") return data::median(column);
  if (kind == "count_distinct") return data::count_distinct(column);
  if (kind.starts_with("quantile ")) return data::quantile(column, std::stod(kind.substr(9)));
  return kind == "mean" ? data::mean(column) : data::std(column);
}

data::Dataset group(const data::Dataset& rows, const Config& options) {
  std::vector<data::Aggregate> aggregates;
  for (const Value& one : options.at("aggregates").items())
    aggregates.push_back(aggregate(one.items().at(0).get<std::string>(), one.items().at(1).get<std::string>()));
  return rows.groupby(options.get<Names>("keys")).aggregate(aggregates);
}

data::Dataset join(const data::Dataset& rows, const Config& options) {
  using enum data::JoinType;
  constexpr std::pair<const char*, data::JoinType> kKinds[] = {
      {"inner", inner},         {"left_outer", left_outer}, {"right_outer", right_outer}, {"full_outer", full_outer},
      {"left_semi", left_semi}, {"right_semi", right_semi}, {"left_anti", left_anti},     {"right_anti", right_anti}};
  const auto wanted = options.get<std::string>("kind");
  for (const auto& [name, kind] : kKinds) {
    if (wanted != name) continue;
    return rows.join(open(options.get<std::string>("other"), options), kind,
                     {.on = options.get<Names>("on"),
                      .right_on = options.get<Names>("right_on", {}),
                      .left_suffix = options.get<std::string>("left_suffix", ""),
                      .right_suffix = options.get<std::string>("right_suffix", "")});
  }
  throw cadre::InvalidArgument("unknown join " + wanted);
}

std::pair<data::Dataset, data::Dataset> split(const data::Dataset& rows, const Config& options) {
  const Value& size = options.at("test_size");
  return size.is_integer() ? rows.train_test_split(size.get<std::int64_t>())
                           : rows.train_test_split(size.get<double>());
}

int run(const std::vector<std::string>& arguments) {
  if (arguments.size() < 4)
    throw cadre::InvalidArgument("usage: data_relational_tool <operation> <options> <folder> <new folder>");
  const std::string& operation = arguments[0];
  const Config options(cadre::base::parse_json(arguments[1], "the options"));
  const data::Dataset rows = open(arguments[2], options);
  const std::string& target = arguments[3];
  if (operation == "sort") sort(rows, options).write_parquet(target);
  if (operation == "groupby") group(rows, options).write_parquet(target);
  if (operation == "join") join(rows, options).write_parquet(target);
  if (operation == "zip") rows.zip({open(options.get<std::string>("other"), options)}).write_parquet(target);
  if (operation == "train") split(rows, options).first.write_parquet(target);
  if (operation == "test") split(rows, options).second.write_parquet(target);
  if (operation == "csv") rows.write_csv(target);
  if (operation == "json") rows.write_json(target);
  if (operation == "unique") std::puts(cadre::to_json(Value(rows.unique(options.get<std::string>("column")))).c_str());
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
