#include "data/plan.h"

#include <arrow/buffer.h>
#include <arrow/io/memory.h>
#include <arrow/ipc/reader.h>
#include <arrow/ipc/writer.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/archive.h"
#include "base/overload.h"
#include "data/arrow_status.h"
#include "data/expressions.h"
#include "data/functions.h"
#include "data/ipc.h"

namespace cadre::data {

// ---- Fields for the archive

void fields(auto& archive, base::Is<ExecutionOptions> auto& options) {
  archive("memory_limit_bytes", options.memory_limit_bytes);
  archive("num_threads", options.num_threads);
  archive("function_place", options.function_place);
  archive("max_task_retries", options.max_task_retries);
  archive("progress_bars", options.progress_bars);
}

namespace {

constexpr std::int64_t kVersion = 1;
constexpr const char* kVersionKey = "cadre_dataset";

// ---- Operators as values: the entry "operator" has the kind

template <class T>
Value optional_value(const std::optional<T>& value) {
  return value ? base::SaveArchive::to_value(*value) : Value();
}

Value names_value(const Names& names) {
  List list;
  for (const std::string& name : names) list.emplace_back(name);
  return list;
}

const char* name_of(ReadFiles::Format format) {
  switch (format) {
    case ReadFiles::Format::parquet:
      return "read_parquet";
    case ReadFiles::Format::csv:
      return "read_csv";
    case ReadFiles::Format::json:
      break;
  }
  return "read_json";
}

Dict save(const ReadFiles& read) {
  Dict types;
  for (const auto& [column, type] : read.types) types.emplace_back(column, type);
  return {{"operator", name_of(read.format)},
          {"paths", names_value(read.paths)},
          {"columns", read.columns ? names_value(*read.columns) : Value()},
          {"filter", read.filter ? read.filter->to_value() : Value()},
          {"hive_partitioning", read.hive_partitioning},
          {"unify_schemas", read.unify_schemas},
          {"delimiter", std::string(1, read.delimiter)},
          {"column_names", names_value(read.column_names)},
          {"types", types}};
}

Dict save(const FromMemory& memory) { return {{"operator", "from_memory"}, {"object", memory.rows->put_into_store()}}; }

Dict save(const Range& range) { return {{"operator", "range"}, {"count", range.count}}; }

Dict save(const Call& call) {
  return {{"operator", "call"},
          {"kind", call.kind},
          {"name", call.name},
          {"batch_size", optional_value(call.batch_size)},
          {"concurrency", optional_value(call.concurrency)},
          {"num_cpus", call.resources.cpus},
          {"num_gpus", call.resources.gpus},
          {"config", call.config.value()}};
}

Dict save(const Filter& filter) { return {{"operator", "filter"}, {"condition", filter.condition.to_value()}}; }

Dict save(const Select& select) { return {{"operator", "select"}, {"columns", names_value(select.columns)}}; }

Dict save(const Slice& slice) {
  return {{"operator", "slice"}, {"skip", slice.skip}, {"count", optional_value(slice.count)}};
}

Dict save(const Concat&) { return {{"operator", "concat"}}; }

Dict save(const Shuffle& shuffle) {
  return {{"operator", "random_shuffle"}, {"seed", static_cast<std::int64_t>(shuffle.seed)}};
}

template <class T>
std::optional<T> optional_at(const Config& entries, const char* key) {
  const Value& value = entries.at(key);
  return value.is_null() ? std::nullopt : std::optional(value.get<T>());
}

ReadFiles load_read(const Config& entries, ReadFiles::Format format) {
  ReadFiles read{.format = format,
                 .paths = entries.get<Names>("paths"),
                 .columns = optional_at<Names>(entries, "columns"),
                 .hive_partitioning = entries.get<bool>("hive_partitioning", false),
                 .unify_schemas = entries.get<bool>("unify_schemas", false),
                 .column_names = entries.get<Names>("column_names")};
  if (const Value& filter = entries.at("filter"); !filter.is_null()) read.filter = Expression::from_value(filter);
  const auto delimiter = entries.get<std::string>("delimiter");
  if (delimiter.size() != 1) throw InvalidArgument("its delimiter is \"" + delimiter + "\", not one character");
  read.delimiter = delimiter.front();
  for (const auto& [column, type] : entries.at("types").dict())
    read.types.emplace_back(column, type.get<std::string>());
  return read;
}

Call load_call(const Config& entries) {
  Call call{.kind = entries.get<std::string>("kind"),
            .name = entries.get<std::string>("name"),
            .batch_size = optional_at<std::int64_t>(entries, "batch_size"),
            .concurrency = optional_at<std::int64_t>(entries, "concurrency"),
            .resources = {.cpus = entries.get<double>("num_cpus"), .gpus = entries.get<double>("num_gpus")},
            .config = Config(entries.at("config"))};
  find_batch_call(call.kind, call.name);  // throws if this program has none
  return call;
}

using Operation = decltype(Node::operation);

Operation load(const Config& entries) {
  using Format = ReadFiles::Format;
  const auto name = entries.get<std::string>("operator");
  for (const Format format : {Format::parquet, Format::csv, Format::json}) {
    if (name == name_of(format)) return load_read(entries, format);
  }
  if (name == "from_memory") return FromMemory{std::make_shared<MemoryRows>(entries.get<Reference>("object"))};
  if (name == "range") return Range{entries.get<std::int64_t>("count")};
  if (name == "call") return load_call(entries);
  if (name == "filter") return Filter{Expression::from_value(entries.at("condition"))};
  if (name == "select") return Select{entries.get<Names>("columns")};
  if (name == "slice") return Slice{entries.get<std::int64_t>("skip"), optional_at<std::int64_t>(entries, "count")};
  if (name == "concat") return Concat{};
  if (name == "random_shuffle") return Shuffle{static_cast<std::uint64_t>(entries.get<std::int64_t>("seed"))};
  throw InvalidArgument("nothing is known about its operator \"" + name + "\"");
}

// Saves nodes as a list, inputs before the nodes that use them: plans may be long, but values may not be deeply
// nested.
std::int64_t save_into(List& list, const NodePtr& node, std::map<const Node*, std::int64_t>& places) {
  if (const auto found = places.find(node.get()); found != places.end()) return found->second;
  List inputs;
  for (const NodePtr& input : node->inputs) inputs.emplace_back(save_into(list, input, places));
  Dict entries = std::visit([](const auto& operation) { return save(operation); }, node->operation);
  entries.emplace_back("inputs", std::move(inputs));
  list.emplace_back(std::move(entries));
  return places[node.get()] = std::ssize(list) - 1;
}

NodePtr load_nodes(const Value& stored) {
  std::vector<NodePtr> nodes;
  for (const Value& value : stored.items()) {
    const Config entries(value);
    std::vector<NodePtr> inputs;
    for (const auto index : entries.get<std::vector<std::int64_t>>("inputs")) {
      if (index < 0 || index >= std::ssize(nodes)) throw InvalidArgument("an operator's input is none before it");
      inputs.push_back(nodes[static_cast<std::size_t>(index)]);
    }
    Operation operation = load(entries);
    const bool is_source = std::holds_alternative<ReadFiles>(operation) ||
                           std::holds_alternative<FromMemory>(operation) || std::holds_alternative<Range>(operation);
    const bool is_concat = std::holds_alternative<Concat>(operation);
    if (!is_concat && inputs.size() != (is_source ? 0U : 1U))
      throw InvalidArgument(fmt::format("an operator has {} inputs", inputs.size()));
    nodes.push_back(std::make_shared<Node>(Node{std::move(operation), std::move(inputs)}));
  }
  if (nodes.empty()) throw InvalidArgument("it has no operator");
  return nodes.back();
}

// ---- Pushing down

// Returns the read directly below; nullptr: it is another operator.
const ReadFiles* read_below(const Node& node) { return std::get_if<ReadFiles>(&node.inputs.front()->operation); }

NodePtr push(const Node& node, const Select& select) {
  const ReadFiles* read = read_below(node);
  if (read == nullptr) return nullptr;
  ReadFiles pushed = *read;
  if (pushed.columns) {
    for (const std::string& column : select.columns) {
      if (std::ranges::find(*pushed.columns, column) == pushed.columns->end()) return nullptr;  // the select will throw
    }
  }
  pushed.columns = select.columns;
  return std::make_shared<Node>(Node{std::move(pushed)});
}

NodePtr push(const Node& node, const Filter& filter) {
  const ReadFiles* read = read_below(node);
  if (read == nullptr || read->format != ReadFiles::Format::parquet) return nullptr;
  if (read->columns) {  // columns that were not selected are missing for the filter
    for (const std::string& column : columns_of(filter.condition)) {
      if (std::ranges::find(*read->columns, column) == read->columns->end()) return nullptr;
    }
  }
  ReadFiles pushed = *read;
  pushed.filter = pushed.filter ? *pushed.filter && filter.condition : filter.condition;
  return std::make_shared<Node>(Node{std::move(pushed)});
}

}  // namespace

// ---- Rows in memory

MemoryRows::MemoryRows(std::shared_ptr<arrow::Schema> schema, std::vector<Block> blocks)
    : schema_(std::move(schema)), blocks_(std::move(blocks)) {}

MemoryRows::MemoryRows(Reference object) : came_from_(std::move(object)) {
  ReadBlocks read = read_blocks(get(*came_from_));
  schema_ = std::move(read.schema);
  blocks_ = std::move(read.blocks);
}

Reference MemoryRows::put_into_store() {
  const std::lock_guard lock(mutex_);
  if (came_from_) return *came_from_;
  if (!object_) object_ = put_blocks(*schema_, blocks_);
  return to_reference(*object_);
}

// ---- Plans

std::string to_string(const Node& node) {
  return std::visit(base::Overload{[](const ReadFiles& read) -> std::string { return name_of(read.format); },
                                   [](const FromMemory&) -> std::string { return "from_memory"; },
                                   [](const Range&) -> std::string { return "range"; },
                                   [](const Call& call) {
                                     const char* method = call.kind == "row function"    ? "map"
                                                          : call.kind == "row predicate" ? "filter"
                                                                                         : "map_batches";
                                     return fmt::format("{}({})", method, call.name);
                                   },
                                   [](const Filter&) -> std::string { return "filter"; },
                                   [](const Select&) -> std::string { return "select_columns"; },
                                   [](const Slice& slice) -> std::string { return slice.skip == 0 ? "limit" : "skip"; },
                                   [](const Concat&) -> std::string { return "concat"; },
                                   [](const Shuffle&) -> std::string { return "random_shuffle"; }},
                    node.operation);
}

NodePtr push_down(const NodePtr& node) {
  if (node->inputs.empty()) return node;
  Node pushed{node->operation, {}};
  for (const NodePtr& input : node->inputs) pushed.inputs.push_back(push_down(input));
  NodePtr merged;
  if (const auto* select = std::get_if<Select>(&pushed.operation)) merged = push(pushed, *select);
  if (const auto* filter = std::get_if<Filter>(&pushed.operation)) merged = push(pushed, *filter);
  return merged != nullptr ? merged : std::make_shared<Node>(std::move(pushed));
}

Value to_value(const PlanContent& plan) {
  List nodes;
  std::map<const Node*, std::int64_t> places;
  save_into(nodes, plan.node, places);
  return {{kVersionKey, kVersion},
          {"name", plan.name},
          {"options", base::SaveArchive::to_value(plan.options)},
          {"operators", std::move(nodes)}};
}

PlanContent to_plan(const Value& stored) {
  if (!stored.is_dict() || find_entry(stored.dict(), kVersionKey) == nullptr)
    throw InvalidArgument("the value is no dataset: one comes from a data::Dataset");
  try {
    const Config entries(stored);
    if (const auto version = entries.get<std::int64_t>(kVersionKey); version > kVersion)
      throw InvalidArgument(fmt::format("it has version {}, and this program reads versions up to {}: use a newer one",
                                        version, kVersion));
    PlanContent plan{.node = load_nodes(entries.at("operators")), .name = entries.get<std::string>("name")};
    base::LoadArchive::load(entries.at("options"), plan.options);
    return plan;
  } catch (const InvalidArgument& error) {
    throw InvalidArgument(fmt::format("the stored dataset cannot be used: {}", error.what()));
  } catch (const NotFound& error) {
    throw NotFound(fmt::format("the stored dataset cannot be used: {}", error.what()));
  }
}

}  // namespace cadre::data
