#include "cadre/data/dataset.h"

#include <arrow/array.h>
#include <arrow/record_batch.h>
#include <arrow/table.h>
#include <arrow/type.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <mutex>
#include <set>
#include <utility>

#include "cadre/data/grouped_data.h"
#include "data/aggregates.h"
#include "data/arrow_status.h"
#include "data/compute.h"
#include "data/execution.h"
#include "data/files.h"
#include "data/folder_writer.h"
#include "data/functions.h"
#include "data/group_by.h"
#include "data/parquet_writer.h"
#include "data/plan.h"
#include "data/row_values.h"
#include "data/stratified_split.h"
#include "data/text_writer.h"

namespace cadre::data {

struct Dataset::State {
  PlanContent plan;
  std::mutex mutex = {};  // guards the following members
  std::optional<ExecutionStats> stats = {};
};

// ---- Access to a dataset's plan

const PlanContent& detail::PlanAccess::plan(const Dataset& dataset) { return dataset.state_->plan; }

Dataset detail::PlanAccess::dataset(PlanContent plan) {
  return Dataset(std::make_shared<Dataset::State>(std::move(plan)));
}

Dataset detail::PlanAccess::append(const Dataset& dataset, decltype(Node::operation) operation,
                                   const std::vector<Dataset>& other_inputs) {
  const PlanContent& before = plan(dataset);
  Node node{std::move(operation), {before.node}};
  for (const Dataset& input : other_inputs) node.inputs.push_back(plan(input).node);
  require_valid(node);
  return PlanAccess::dataset({std::make_shared<Node>(std::move(node)), before.name, before.options});
}

void detail::PlanAccess::keep_stats(const Dataset& dataset, ExecutionStats stats) {
  const std::lock_guard lock(dataset.state_->mutex);
  dataset.state_->stats = std::move(stats);
}

namespace {

using detail::PlanAccess;

Dataset append(const Dataset& dataset, decltype(Node::operation) operation) {
  return PlanAccess::append(dataset, std::move(operation));
}

Dataset from_node(Node node) { return PlanAccess::dataset({.node = std::make_shared<Node>(std::move(node))}); }

std::shared_ptr<arrow::Schema> no_columns() { return arrow::schema(arrow::FieldVector{}); }

void throw_faults(const std::string& what, const std::vector<std::string>& faults) {
  if (!faults.empty()) throw InvalidArgument(fmt::format("{}:\n  {}", what, fmt::join(faults, "\n  ")));
}

void check_at_least(std::vector<std::string>& faults, const char* name, std::optional<std::int64_t> value,
                    std::int64_t least) {
  if (value && *value < least) faults.push_back(fmt::format("{} is {}; it must be {} or more", name, *value, least));
}

void check_amount(std::vector<std::string>& faults, const char* name, double amount) {
  if (!std::isfinite(amount) || amount < 0)
    faults.push_back(fmt::format("{} is {}; it must be a number from 0 on", name, amount));
}

void require_count(const char* what, std::int64_t count) {
  std::vector<std::string> faults;
  check_at_least(faults, "count", count, 0);
  throw_faults(what, faults);
}

void require_once(const char* what, std::vector<std::string> columns) {
  std::ranges::sort(columns);
  if (const auto twice = std::ranges::adjacent_find(columns); twice != columns.end())
    throw InvalidArgument(fmt::format("{}: the column \"{}\" is there twice", what, *twice));
}

bool is_of_groups(const Dataset& dataset) {
  return std::holds_alternative<GroupBatches>(PlanAccess::plan(dataset).node->operation);
}

// `function`: a BatchFunction or the like. `has_size`: batches have a size without a batch_size.
template <class Named>
Call to_call(const std::string& kind, const Named& function, const MapBatchesOptions& options, bool has_size = false) {
  std::vector<std::string> faults;
  check_at_least(faults, "batch_size", options.batch_size, 1);
  check_at_least(faults, "concurrency", options.concurrency, 1);
  check_amount(faults, "num_cpus", options.num_cpus);
  check_amount(faults, "num_gpus", options.num_gpus);
  if (options.num_gpus > 0 && !options.batch_size && !has_size)
    faults.emplace_back("a batch_size is needed with num_gpus");
  if (kind == "class" && !options.config.empty())
    faults.emplace_back("config is for functions; a class has constructor_config");
  if (kind != "class" && !options.constructor_config.empty())
    faults.emplace_back("constructor_config is for classes; a function has config");
  throw_faults(fmt::format("map_batches({}) cannot be used", function.name), faults);
  Call call{.kind = kind,
            .name = function.name,
            .batch_size = options.batch_size,
            .concurrency = options.concurrency,
            .resources = {.cpus = options.num_cpus, .gpus = options.num_gpus},
            .config = kind == "class" ? options.constructor_config : options.config,
            .host_function = function.host_function};
  find_batch_call(call);
  return call;
}

// Calls `use` with each block of `run`; stores the statistics in `asked`.
template <class Use>
void for_each_block(const Dataset& asked, const Dataset& run, Use use) {
  Execution execution(PlanAccess::plan(run));
  while (const auto block = execution.next()) use(*block);
  PlanAccess::keep_stats(asked, execution.stats());
}

}  // namespace

// ---- Values

Dataset::Dataset()
    : Dataset(from_node({FromMemory{std::make_shared<MemoryRows>(no_columns(), std::vector<Block>())}})) {}

Dataset::Dataset(std::shared_ptr<State> state) : state_(std::move(state)) {}

Dataset::Dataset(const Value& stored) : Dataset(std::make_shared<State>(to_plan(stored))) {}

Dataset::operator Value() const { return to_value(state_->plan); }

std::vector<std::string> Schema::names() const {
  std::vector<std::string> names;
  for (const Field& field : fields) names.push_back(field.name);
  return names;
}

std::string to_string(const Schema& schema) {
  std::size_t width = 6;
  for (const Field& field : schema.fields) width = std::max(width, field.name.size());
  std::string text = fmt::format("{:<{}}  {}\n", "column", width, "type");
  for (const Field& field : schema.fields) text += fmt::format("{:<{}}  {}\n", field.name, width, field.type);
  return text;
}

Aggregate count() { return {Aggregate::Kind::count, ""}; }
Aggregate count(const std::string& column) { return {Aggregate::Kind::count, column}; }
Aggregate sum(const std::string& column) { return {Aggregate::Kind::sum, column}; }
Aggregate min(const std::string& column) { return {Aggregate::Kind::min, column}; }
Aggregate max(const std::string& column) { return {Aggregate::Kind::max, column}; }
Aggregate mean(const std::string& column) { return {Aggregate::Kind::mean, column}; }
Aggregate std(const std::string& column) { return {Aggregate::Kind::std, column}; }
Aggregate quantile(const std::string& column, double q) { return {Aggregate::Kind::quantile, column, q}; }
Aggregate median(const std::string& column) { return quantile(column, 0.5); }
Aggregate count_distinct(const std::string& column) { return {Aggregate::Kind::count_distinct, column}; }

std::string to_string(const Aggregate& aggregate) {
  constexpr const char* kNames[] = {"count", "sum", "min", "max", "mean", "std", "median", "count_distinct"};
  if (aggregate.kind == Aggregate::Kind::quantile && aggregate.q != 0.5)
    return fmt::format("quantile({}, {})", aggregate.column, aggregate.q);
  return fmt::format("{}({})", kNames[static_cast<int>(aggregate.kind)], aggregate.column);
}

// ---- Operators

Dataset Dataset::map_batches(const BatchFunction& function, const MapBatchesOptions& options) const {
  return append(*this, to_call("function", function, options, is_of_groups(*this)));
}

Dataset Dataset::map_batches(const Actor& actor, const MapBatchesOptions& options) const {
  return append(*this, to_call("class", actor, options, is_of_groups(*this)));
}

Dataset Dataset::map(const RowFunction& function, const MapOptions& options) const {
  return append(*this,
                to_call("row function", function, {.concurrency = options.concurrency, .num_cpus = options.num_cpus}));
}

Dataset Dataset::flat_map(const FlatMapFunction& function, const MapOptions& options) const {
  return append(*this, to_call("function of row to rows", function,
                               {.concurrency = options.concurrency, .num_cpus = options.num_cpus}));
}

Dataset Dataset::filter(const RowPredicate& predicate, const MapOptions& options) const {
  return append(
      *this, to_call("row predicate", predicate, {.concurrency = options.concurrency, .num_cpus = options.num_cpus}));
}

Dataset Dataset::filter(const Expression& condition) const { return append(*this, Filter{condition}); }

Dataset Dataset::select_columns(const std::vector<std::string>& columns) const {
  require_once("select_columns", columns);
  return append(*this, Select{columns});
}

Dataset Dataset::rename_columns(const std::vector<std::pair<std::string, std::string>>& names) const {
  std::vector<std::string> before;
  std::vector<std::string> after;
  for (const auto& [old_name, new_name] : names) {
    before.push_back(old_name);
    after.push_back(new_name);
  }
  require_once("rename_columns", before);
  require_once("rename_columns", after);
  return append(*this, Rename{names});
}

Dataset Dataset::limit(std::int64_t count) const {
  require_count("limit cannot be used", count);
  return append(*this, Slice{.count = count});
}

Dataset Dataset::skip(std::int64_t count) const {
  require_count("skip cannot be used", count);
  return append(*this, Slice{.skip = count});
}

Dataset Dataset::concat(const std::vector<Dataset>& others, SchemaMismatch schema_mismatch) const {
  return PlanAccess::append(*this, Concat{.unify_schemas = schema_mismatch == SchemaMismatch::unify}, others);
}

Dataset Dataset::random_shuffle(std::uint64_t seed) const { return append(*this, Shuffle{seed}); }

Dataset Dataset::random_sample(double fraction, std::uint64_t seed) const {
  return append(*this, Sample{.fraction = fraction, .seed = seed});
}

Dataset Dataset::sort(const std::vector<SortKey>& keys) const { return append(*this, Sort{keys}); }

GroupedData Dataset::groupby(const std::vector<std::string>& keys) const { return {*this, keys}; }

Dataset Dataset::join(const Dataset& right, JoinType type, const JoinOptions& options) const {
  return PlanAccess::append(*this,
                            Join{.kind = type,
                                 .left_on = options.on,
                                 .right_on = options.right_on.empty() ? options.on : options.right_on,
                                 .left_suffix = options.left_suffix,
                                 .right_suffix = options.right_suffix},
                            {right});
}

Dataset Dataset::zip(const std::vector<Dataset>& others) const { return PlanAccess::append(*this, Zip{}, others); }

std::vector<Value> Dataset::unique(const std::string& column, bool ignore_nulls) const {
  std::vector<Value> values;
  const Dataset different = select_columns({column}).groupby(column).aggregate({});
  for_each_block(*this, different, [&](const Block& block) {
    for (std::int64_t row = 0; row < block->num_rows(); ++row) {
      Value value = value_at(*block->column(0), row);
      if (!ignore_nulls || !value.is_null()) values.push_back(std::move(value));
    }
  });
  return values;
}

std::pair<Dataset, Dataset> Dataset::train_test_split(double test_fraction,
                                                      const TrainTestSplitOptions& options) const {
  if (!(test_fraction > 0 && test_fraction < 1))
    throw InvalidArgument(
        fmt::format("train_test_split cannot be used: test_fraction is {}; it must be above 0 and below 1, or be a "
                    "number of rows, which is an integer",
                    test_fraction));
  const std::int64_t rows = count();
  // A fraction such as 0.07 is not exact in binary: 100 rows of it are 7, although their product is above 7.
  const double exact = static_cast<double>(rows) * test_fraction;
  const double inexact = static_cast<double>(rows) * std::numeric_limits<double>::epsilon();
  return split_off(std::max<std::int64_t>(static_cast<std::int64_t>(std::ceil(exact - inexact)), 1), rows, options);
}

std::pair<Dataset, Dataset> Dataset::split_off(std::int64_t count, const TrainTestSplitOptions& options) const {
  return split_off(count, this->count(), options);
}

std::pair<Dataset, Dataset> Dataset::split_off(std::int64_t count, std::int64_t rows,
                                               const TrainTestSplitOptions& options) const {
  if (count <= 0 || count >= rows)
    throw InvalidArgument(
        fmt::format("train_test_split cannot be used: {} of {} rows would be for the test; it must be above 0, and "
                    "leave rows for training",
                    count, rows));
  const Dataset all = options.shuffle ? random_shuffle(options.seed) : *this;
  if (!options.stratify.empty()) return stratified_split(all, options.stratify, count);
  return {all.limit(rows - count), all.skip(rows - count)};
}

std::vector<Dataset> Dataset::split(std::int64_t n, const SplitOptions& options) const {
  if (n < 1) throw InvalidArgument(fmt::format("a dataset cannot be split into {} parts: n must be above 0", n));
  const std::int64_t rows = count();
  std::vector<Dataset> parts;
  std::int64_t at = 0;
  for (std::int64_t part = 0; part < n; ++part) {
    const std::int64_t size = rows / n + (!options.equal && part < rows % n ? 1 : 0);
    parts.push_back(append(*this, Slice{.skip = at, .count = size}));
    at += size;
  }
  return parts;
}

Dataset Dataset::materialize() const {
  std::vector<Block> blocks;
  std::shared_ptr<arrow::Schema> schema;
  {
    Execution execution(state_->plan);
    schema = execution.schema();
    while (auto block = execution.next()) blocks.push_back(*std::move(block));
    PlanAccess::keep_stats(*this, execution.stats());
  }
  if (!blocks.empty()) schema = blocks.front()->schema();
  if (schema == nullptr) schema = no_columns();
  return PlanAccess::dataset(
      {std::make_shared<Node>(Node{FromMemory{std::make_shared<MemoryRows>(std::move(schema), std::move(blocks))}}),
       state_->plan.name, state_->plan.options});
}

Dataset& Dataset::set_name(std::string name) {
  PlanContent plan = state_->plan;
  plan.name = std::move(name);
  state_ = std::make_shared<State>(std::move(plan));
  return *this;
}

const std::string& Dataset::name() const { return state_->plan.name; }

Dataset Dataset::with_options(const ExecutionOptions& options) const {
  constexpr std::int64_t kLeastMemory = std::int64_t{1} << 20;
  std::vector<std::string> faults;
  check_at_least(faults, "memory_limit_bytes", options.memory_limit_bytes, kLeastMemory);
  check_at_least(faults, "num_threads", options.num_threads, 1);
  check_at_least(faults, "max_task_retries", options.max_task_retries, 0);
  throw_faults("the options of a dataset cannot be used", faults);
  return PlanAccess::dataset({state_->plan.node, state_->plan.name, options});
}

const ExecutionOptions& Dataset::options() const { return state_->plan.options; }

// ---- Properties

Schema Dataset::schema() const {
  Execution execution(state_->plan);
  std::shared_ptr<arrow::Schema> known = execution.schema();
  if (known == nullptr) {
    if (const auto block = execution.next()) known = (*block)->schema();
  }
  Schema schema;
  if (known == nullptr) return schema;
  for (const auto& field : known->fields()) schema.fields.push_back({field->name(), field->type()->ToString()});
  return schema;
}

std::int64_t Dataset::count() const {
  const NodePtr node = push_down(state_->plan.node);
  if (const auto stored = stored_count(node)) return *stored;
  static_cast<void>(Execution(state_->plan));  // throws if the plan has a fault
  if (const auto known = known_count(node)) return *known;
  std::int64_t rows = 0;
  for_each_block(*this, select_columns({}), [&](const Block& block) { rows += block->num_rows(); });
  return rows;
}

std::int64_t Dataset::size_bytes() const {
  std::int64_t bytes = 0;
  for_each_block(*this, *this, [&](const Block& block) { bytes += bytes_of(block); });
  return bytes;
}

std::vector<Row> Dataset::take(std::int64_t count) const {
  std::vector<Row> rows;
  for_each_block(*this, limit(count), [&](const Block& block) {
    for (std::int64_t row = 0; row < block->num_rows(); ++row) rows.push_back(row_at(*block, row));
  });
  return rows;
}

std::vector<Row> Dataset::take_all(std::optional<std::int64_t> most) const {
  std::vector<Row> rows;
  for_each_block(*this, *this, [&](const Block& block) {
    for (std::int64_t row = 0; row < block->num_rows(); ++row) rows.push_back(row_at(*block, row));
    if (most && std::ssize(rows) > *most)
      throw InvalidArgument(fmt::format("the dataset has more than {} rows: take() returns the first ones", *most));
  });
  return rows;
}

Batch Dataset::take_batch(std::int64_t count) const {
  std::vector<Block> blocks;
  for_each_block(*this, limit(count), [&](const Block& block) { blocks.push_back(block); });
  if (blocks.empty()) throw InvalidArgument("take_batch needs a row, and the dataset has none");
  return Batch(data::join(blocks, arrow::default_memory_pool()));
}

void Dataset::show(std::int64_t count) const {
  for (const Row& row : take(count)) std::puts(to_json(row.value()).c_str());
}

namespace {

void require_within_limit(const std::vector<Aggregation>& aggregations, std::int64_t limit_bytes) {
  std::int64_t bytes = 0;
  for (const Aggregation& one : aggregations) bytes += one.held_bytes();
  if (bytes > limit_bytes)
    throw_memory_limit("the values that quantile and count_distinct keep take", bytes, limit_bytes,
                       "aggregate a sample of the rows (random_sample)");
}

}  // namespace

Row Dataset::aggregate(const std::vector<Aggregate>& aggregates, const AggregateOptions& options) const {
  if (options.ddof < 0) throw InvalidArgument(fmt::format("ddof is {}; it must be 0 or more", options.ddof));
  std::vector<Aggregation> aggregations;
  std::vector<std::string> columns;
  for (const Aggregate& one : aggregates) {
    if (const std::string fault = fault_of(one); !fault.empty()) throw InvalidArgument(fault);
    aggregations.emplace_back(one, options);
    const bool is_of_rows = one.column.empty() && one.kind == Aggregate::Kind::count;
    if (!is_of_rows && std::ranges::find(columns, one.column) == columns.end()) columns.push_back(one.column);
  }
  if (aggregates.empty()) throw InvalidArgument("aggregate needs at least one aggregate");
  const std::int64_t limit = memory_limit(PlanAccess::plan(*this).options);
  for_each_block(*this, select_columns(columns), [&](const Block& block) {
    for (Aggregation& one : aggregations) {
      const std::string& column = one.aggregate().column;
      if (column.empty()) {
        one.add_rows(block->num_rows());
      } else {
        one.add(block->GetColumnByName(column));
      }
    }
    require_within_limit(aggregations, limit);
  });
  Dict results;
  for (const Aggregation& one : aggregations)
    results.emplace_back(to_string(one.aggregate()), value_at(*one.results(), 0));
  return Row(std::move(results));
}

namespace {

Value only_result(const Dataset& dataset, const Aggregate& aggregate, const AggregateOptions& options) {
  const Row row = dataset.aggregate({aggregate}, options);
  const Value& result = row.dict().front().second;
  if (result.is_null())
    throw InvalidArgument(fmt::format("{} cannot be computed: the column has {}; aggregate() gives null then",
                                      to_string(aggregate),
                                      options.ignore_nulls ? "no values" : "nulls, or no values"));
  return result;
}

}  // namespace

double Dataset::quantile(const std::string& column, double q, const AggregateOptions& options) const {
  return only_result(*this, data::quantile(column, q), options).get<double>();
}
double Dataset::median(const std::string& column, const AggregateOptions& options) const {
  return quantile(column, 0.5, options);
}
std::int64_t Dataset::count_distinct(const std::string& column, const AggregateOptions& options) const {
  return only_result(*this, data::count_distinct(column), options).get<std::int64_t>();
}
double Dataset::mean(const std::string& column, const AggregateOptions& options) const {
  return only_result(*this, data::mean(column), options).get<double>();
}
Value Dataset::sum(const std::string& column, const AggregateOptions& options) const {
  return only_result(*this, data::sum(column), options);
}
Value Dataset::min(const std::string& column, const AggregateOptions& options) const {
  return only_result(*this, data::min(column), options);
}
Value Dataset::max(const std::string& column, const AggregateOptions& options) const {
  return only_result(*this, data::max(column), options);
}
double Dataset::std(const std::string& column, const AggregateOptions& options) const {
  return only_result(*this, data::std(column), options).get<double>();
}

Shard Dataset::shard(const ShardOptions& options) const { return PlanAccess::shard(*this, options); }

namespace {

std::vector<std::filesystem::path> write(const Dataset& dataset, const std::filesystem::path& folder,
                                         FileFormat format) {
  Execution execution(PlanAccess::plan(dataset));  // first: throws if the plan has a fault
  FolderWriter writer(folder, std::move(format), execution.schema());
  while (const auto block = execution.next()) writer.write(*block);
  auto files = writer.finish(execution.schema());
  PlanAccess::keep_stats(dataset, execution.stats());
  return files;
}

}  // namespace

std::vector<std::filesystem::path> Dataset::write_parquet(const std::filesystem::path& folder,
                                                          const WriteParquetOptions& options) const {
  std::vector<std::string> faults;
  check_at_least(faults, "max_rows_per_file", options.max_rows_per_file, 1);
  check_at_least(faults, "rows_per_row_group", options.rows_per_row_group, 1);
  throw_faults("write_parquet cannot begin", faults);
  return write(*this, folder, parquet_format(options));
}

std::vector<std::filesystem::path> Dataset::write_csv(const std::filesystem::path& folder,
                                                      const WriteCsvOptions& options) const {
  std::vector<std::string> faults;
  check_at_least(faults, "max_rows_per_file", options.max_rows_per_file, 1);
  if (options.delimiter == '"' || options.delimiter == '\n' || options.delimiter == '\r')
    faults.emplace_back("delimiter is a quote or the end of a line");
  throw_faults("write_csv cannot begin", faults);
  return write(*this, folder, csv_format(options));
}

std::vector<std::filesystem::path> Dataset::write_json(const std::filesystem::path& folder,
                                                       const WriteJsonOptions& options) const {
  std::vector<std::string> faults;
  check_at_least(faults, "max_rows_per_file", options.max_rows_per_file, 1);
  throw_faults("write_json cannot begin", faults);
  return write(*this, folder, json_format(options));
}

std::optional<ExecutionStats> Dataset::stats() const {
  const std::lock_guard lock(state_->mutex);
  return state_->stats;
}

// ---- Sources

namespace {

Dataset read_files(ReadFiles read) {
  if (read.paths.empty()) throw InvalidArgument("a dataset is read from at least one path");
  if (read.columns) require_once("a dataset's columns", *read.columns);
  for (std::string& path : read.paths) path = to_plan_path(path);
  find_files(read.paths, endings_of(read.format));
  return from_node({std::move(read)});
}

std::optional<Names> some_columns(const Names& columns) {
  return columns.empty() ? std::nullopt : std::optional(columns);
}

}  // namespace

Dataset read_parquet(const std::vector<std::string>& paths, const ParquetOptions& options) {
  return read_files({.format = ReadFiles::Format::parquet,
                     .paths = paths,
                     .columns = some_columns(options.columns),
                     .filter = options.filter,
                     .hive_partitioning = options.hive_partitioning,
                     .unify_schemas = options.schema_mismatch == SchemaMismatch::unify});
}
Dataset read_parquet(const std::string& path, const ParquetOptions& options) {
  return read_parquet(std::vector{path}, options);
}

Dataset read_csv(const std::vector<std::string>& paths, const CsvOptions& options) {
  return read_files({.format = ReadFiles::Format::csv,
                     .paths = paths,
                     .columns = some_columns(options.columns),
                     .hive_partitioning = options.hive_partitioning,
                     .unify_schemas = options.schema_mismatch == SchemaMismatch::unify,
                     .delimiter = options.delimiter,
                     .column_names = options.column_names,
                     .types = options.types});
}
Dataset read_csv(const std::string& path, const CsvOptions& options) { return read_csv(std::vector{path}, options); }

Dataset read_json(const std::vector<std::string>& paths, const JsonOptions& options) {
  return read_files({.format = ReadFiles::Format::json,
                     .paths = paths,
                     .columns = some_columns(options.columns),
                     .hive_partitioning = options.hive_partitioning,
                     .unify_schemas = options.schema_mismatch == SchemaMismatch::unify,
                     .types = options.types});
}
Dataset read_json(const std::string& path, const JsonOptions& options) { return read_json(std::vector{path}, options); }

Dataset from_arrow(const std::shared_ptr<arrow::Table>& table) {
  if (table == nullptr) throw InvalidArgument("from_arrow was given a null pointer");
  std::vector<Block> blocks;
  arrow::TableBatchReader reader(*table);
  for (;;) {
    Block block;
    check(reader.ReadNext(&block), "cannot take a table over");
    if (block == nullptr) break;
    if (block->num_rows() > 0) blocks.push_back(std::move(block));
  }
  static_cast<void>(
      Batch(checked(arrow::RecordBatch::MakeEmpty(table->schema()), "cannot take a table over")));  // checks the names
  return from_node({FromMemory{std::make_shared<MemoryRows>(table->schema(), std::move(blocks))}});
}

Dataset from_batches(const std::vector<Batch>& batches) {
  if (batches.empty()) return {};
  const auto schema = batches.front().arrow()->schema();
  std::vector<Block> blocks;
  for (const Batch& batch : batches) {
    if (!batch.arrow()->schema()->Equals(*schema, false))
      throw InvalidArgument(
          fmt::format("the batches of a dataset have the same columns, but these are different: {{{}}} "
                      "and {{{}}}",
                      schema->ToString(), batch.arrow()->schema()->ToString()));
    if (batch.num_rows() > 0) blocks.push_back(batch.arrow());
  }
  return from_node({FromMemory{std::make_shared<MemoryRows>(schema, std::move(blocks))}});
}

Dataset from_rows(const std::vector<Row>& rows) { return from_batches({to_batch(rows)}); }

Dataset range(std::int64_t count) {
  require_count("range cannot be used", count);
  return from_node({Range{count}});
}

}  // namespace cadre::data
