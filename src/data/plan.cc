#include "data/plan.h"

#include <arrow/buffer.h>
#include <arrow/io/memory.h>
#include <arrow/ipc/reader.h>
#include <arrow/ipc/writer.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/overload.h"
#include "cadre/stored.h"
#include "data/aggregates.h"
#include "data/arrow_status.h"
#include "data/expressions.h"
#include "data/functions.h"
#include "data/ipc.h"

namespace cadre::data {

// ---- Operators as values

Value stored_form(const std::optional<Expression>& condition) { return condition ? condition->to_value() : Value(); }
void read_stored(std::optional<Expression>& condition, const cadre::Stored& stored) {
  if (stored.value().is_null()) return condition.reset();
  condition = Expression::from_value(stored.value());
}

Value stored_form(const Filter& filter) { return Dict{{"condition", filter.condition.to_value()}}; }
void read_stored(Filter& filter, const cadre::Stored& stored) {
  const Value* condition = find_entry(stored.dict(), "condition");
  if (condition == nullptr) stored.refuse("the filter has no condition");
  filter.condition = Expression::from_value(*condition);
}

// Older plans do not say if schemas are unified.
Value stored_form(const Concat& concat) { return Dict{{"unify_schemas", concat.unify_schemas}}; }
void read_stored(Concat& concat, const cadre::Stored& stored) {
  if (const Value* unify = find_entry(stored.dict(), "unify_schemas"))
    concat.unify_schemas = stored.at("unify_schemas", *unify).get<bool>();
}

Value stored_form(const FromMemory& memory) { return Dict{{"object", memory.rows->put_into_store()}}; }
void read_stored(FromMemory& memory, const cadre::Stored& stored) {
  const Value* object = find_entry(stored.dict(), "object");
  if (object == nullptr) stored.refuse("there is no object with the rows");
  memory.rows = std::make_shared<MemoryRows>(stored.at("object", *object).get<Reference>());
}

Value stored_form(const SortKey& key) { return Dict{{"column", key.column}, {"descending", key.descending}}; }
void read_stored(SortKey& key, const cadre::Stored& stored) {
  for (const auto& [name, value] : stored.dict()) {
    if (name == "column") {
      key.column = stored.at(name, value).get<std::string>();
    } else if (name == "descending") {
      key.descending = stored.at(name, value).get<bool>();
    } else {
      stored.refuse("a sort key has no \"" + name + "\"");
    }
  }
}

namespace {

constexpr std::int64_t kVersion = 2;
constexpr const char* kVersionKey = "cadre_dataset";

const char* name_of(ReadFiles::Format format) {
  switch (format) {
    case ReadFiles::Format::parquet:
      return "read_parquet";
    case ReadFiles::Format::csv:
      return "read_csv";
    case ReadFiles::Format::json:
      return "read_json";
    case ReadFiles::Format::images:
      return "read_images";
    case ReadFiles::Format::binary_files:
      return "read_binary_files";
    case ReadFiles::Format::text:
      return "read_text";
    case ReadFiles::Format::numpy:
      return "read_numpy";
    case ReadFiles::Format::tf_records:
      return "read_tfrecords";
    case ReadFiles::Format::webdataset:
      break;
  }
  return "read_webdataset";
}

// The nodes form a list, inputs before the nodes that use them: plans may be long, but values may not be deeply nested.
struct StoredNode {
  decltype(Node::operation) operation = {};
  std::vector<std::int64_t> inputs = {};  // places in the list
};

struct StoredPlan {
  std::int64_t cadre_dataset = kVersion;
  std::string name = {};
  ExecutionOptions options = {};
  std::vector<StoredNode> operators = {};
};

std::int64_t put_into(std::vector<StoredNode>& list, const NodePtr& node, std::map<const Node*, std::int64_t>& places) {
  if (const auto found = places.find(node.get()); found != places.end()) return found->second;
  std::vector<std::int64_t> inputs;
  for (const NodePtr& input : node->inputs) inputs.push_back(put_into(list, input, places));
  list.push_back({node->operation, std::move(inputs)});
  return places[node.get()] = std::ssize(list) - 1;
}

// Returns the number of inputs of an operator; empty: any.
std::optional<std::size_t> inputs_of(const decltype(Node::operation)& operation) {
  using Count = std::optional<std::size_t>;
  return std::visit(
      base::Overload{[](const ReadFiles&) -> Count { return 0; }, [](const FromMemory&) -> Count { return 0; },
                     [](const Range&) -> Count { return 0; }, [](const Concat&) -> Count { return std::nullopt; },
                     [](const Zip&) -> Count { return std::nullopt; }, [](const Join&) -> Count { return 2; },
                     [](const auto&) -> Count { return 1; }},
      operation);
}

// ---- Faults of operators

void add_twice(std::vector<std::string>& faults, Names columns) {
  std::ranges::sort(columns);
  if (const auto twice = std::ranges::adjacent_find(columns); twice != columns.end())
    faults.push_back(fmt::format("the column \"{}\" is there twice", *twice));
}

void add_faults(std::vector<std::string>& faults, const Sample& sample) {
  if (!(sample.fraction >= 0 && sample.fraction <= 1))
    faults.push_back(fmt::format("fraction is {}; it must be from 0 to 1", sample.fraction));
}

void add_faults(std::vector<std::string>& faults, const Sort& sort) {
  Names columns;
  for (const SortKey& key : sort.keys) columns.push_back(key.column);
  if (columns.empty()) faults.emplace_back("it needs at least one column");
  add_twice(faults, columns);
}

void add_faults(std::vector<std::string>& faults, const GroupBatches& groups) {
  if (groups.keys.empty()) faults.emplace_back("it needs at least one key column");
  add_twice(faults, groups.keys);
}

void add_faults(std::vector<std::string>& faults, const GroupBy& group_by) {
  add_faults(faults, GroupBatches{group_by.keys});
  if (group_by.options.ddof < 0)
    faults.push_back(fmt::format("ddof is {}; it must be 0 or more", group_by.options.ddof));
  Names names;
  for (const Aggregate& aggregate : group_by.aggregates) {
    names.push_back(to_string(aggregate));
    if (std::string fault = fault_of(aggregate); !fault.empty()) faults.push_back(std::move(fault));
  }
  add_twice(faults, names);
}

void add_faults(std::vector<std::string>& faults, const Join& join) {
  if (join.left_on.empty()) faults.emplace_back("it needs at least one key column in JoinOptions::on");
  if (join.left_on.size() != join.right_on.size())
    faults.push_back(
        fmt::format("JoinOptions::on has {} columns, and right_on has {}; each is compared with one of the "
                    "other",
                    join.left_on.size(), join.right_on.size()));
  add_twice(faults, join.left_on);
  add_twice(faults, join.right_on);
}

NodePtr to_node(std::vector<StoredNode> stored) {
  std::vector<NodePtr> nodes;
  for (StoredNode& node : stored) {
    if (const auto* call = std::get_if<Call>(&node.operation)) find_batch_call(*call);  // throws if missing
    if (const auto count = inputs_of(node.operation); count && node.inputs.size() != *count)
      throw InvalidArgument(fmt::format("an operator has {} inputs", node.inputs.size()));
    std::vector<NodePtr> inputs;
    for (const std::int64_t index : node.inputs) {
      if (index < 0 || index >= std::ssize(nodes)) throw InvalidArgument("an operator's input is none before it");
      inputs.push_back(nodes[static_cast<std::size_t>(index)]);
    }
    nodes.push_back(std::make_shared<Node>(Node{std::move(node.operation), std::move(inputs)}));
    require_valid(*nodes.back());
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

// Returns an input of a groupby with the columns that it uses only, so that a read leaves out the others.
NodePtr with_used_columns(const NodePtr& input, const GroupBy& group_by) {
  Names columns = group_by.keys;
  for (const Aggregate& aggregate : group_by.aggregates) {
    if (!aggregate.column.empty() && std::ranges::find(columns, aggregate.column) == columns.end())
      columns.push_back(aggregate.column);
  }
  const Node select{Select{std::move(columns)}, {input}};
  NodePtr merged = push(select, std::get<Select>(select.operation));
  return merged != nullptr ? merged : std::make_shared<Node>(select);
}

}  // namespace

void require_valid(const Node& node) {
  std::vector<std::string> faults;
  std::visit(
      [&]<class Operation>(const Operation& operation) {
        if constexpr (requires { add_faults(faults, operation); }) add_faults(faults, operation);
      },
      node.operation);
  if (!faults.empty())
    throw InvalidArgument(fmt::format("{} cannot be used:\n  {}", to_string(node), fmt::join(faults, "\n  ")));
}

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
                                     const char* method = call.kind == "row function"              ? "map"
                                                          : call.kind == "row predicate"           ? "filter"
                                                          : call.kind == "function of row to rows" ? "flat_map"
                                                                                                   : "map_batches";
                                     return fmt::format("{}({})", method, call.name);
                                   },
                                   [](const Filter&) -> std::string { return "filter"; },
                                   [](const Select&) -> std::string { return "select_columns"; },
                                   [](const Rename&) -> std::string { return "rename_columns"; },
                                   [](const Slice& slice) -> std::string { return slice.skip == 0 ? "limit" : "skip"; },
                                   [](const Concat&) -> std::string { return "concat"; },
                                   [](const RowNumbers&) -> std::string { return "with_row_numbers"; },
                                   [](const Shuffle&) -> std::string { return "random_shuffle"; },
                                   [](const Sample&) -> std::string { return "random_sample"; },
                                   [](const Sort&) -> std::string { return "sort"; },
                                   [](const GroupBy&) -> std::string { return "groupby"; },
                                   [](const GroupBatches&) -> std::string { return "map_groups"; },
                                   [](const Join&) -> std::string { return "join"; },
                                   [](const Zip&) -> std::string { return "zip"; }},
                    node.operation);
}

NodePtr push_down(const NodePtr& node) {
  if (node->inputs.empty()) return node;
  Node pushed{node->operation, {}};
  for (const NodePtr& input : node->inputs) pushed.inputs.push_back(push_down(input));
  if (const auto* group_by = std::get_if<GroupBy>(&pushed.operation))
    pushed.inputs = {with_used_columns(pushed.inputs.front(), *group_by)};
  NodePtr merged;
  if (const auto* select = std::get_if<Select>(&pushed.operation)) merged = push(pushed, *select);
  if (const auto* filter = std::get_if<Filter>(&pushed.operation)) merged = push(pushed, *filter);
  return merged != nullptr ? merged : std::make_shared<Node>(std::move(pushed));
}

Value to_value(const PlanContent& plan) {
  StoredPlan stored{.name = plan.name, .options = plan.options};
  std::map<const Node*, std::int64_t> places;
  put_into(stored.operators, plan.node, places);
  return cadre::to_stored(stored);
}

PlanContent to_plan(const Value& value) {
  const Value* version = value.is_dict() ? find_entry(value.dict(), kVersionKey) : nullptr;
  if (version == nullptr) throw InvalidArgument("the value is no dataset: one comes from a data::Dataset");
  try {
    if (*version != Value(kVersion))
      throw InvalidArgument(
          fmt::format("it has version {}, and this program reads version {}: use the Cadre that stored it",
                      to_json(*version), kVersion));
    auto stored = cadre::complete_from_value<StoredPlan>(value);
    return {.node = to_node(std::move(stored.operators)), .name = std::move(stored.name), .options = stored.options};
  } catch (const InvalidArgument& error) {
    throw InvalidArgument(fmt::format("the stored dataset cannot be used: {}", error.what()));
  } catch (const NotFound& error) {
    throw NotFound(fmt::format("the stored dataset cannot be used: {}", error.what()));
  }
}

}  // namespace cadre::data
