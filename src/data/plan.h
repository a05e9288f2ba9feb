// What a dataset is: a tree of operators that never change, and its form as a value.
#pragma once

#include <arrow/type_fwd.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "cadre/data/dataset.h"
#include "cadre/object.h"
#include "cadre/value.h"

namespace cadre::data {

using Block = std::shared_ptr<arrow::RecordBatch>;  // never null
using Names = std::vector<std::string>;

// ---- Operators

struct ReadFiles {
  enum class Format { parquet, csv, json };
  Format format = Format::parquet;
  Names paths = {};                       // absolute, or URIs; files, folders and patterns
  std::optional<Names> columns = {};      // empty: all
  std::optional<Expression> filter = {};  // Parquet only
  bool hive_partitioning = true;
  bool unify_schemas = true;  // false: files whose columns differ are refused
  char delimiter = ',';       // of CSV, as the next one
  Names column_names = {};
  std::vector<std::pair<std::string, std::string>> types = {};  // of text files
};
// Rows that this process has. Shared by all plans that have them.
class MemoryRows {
 public:
  MemoryRows(std::shared_ptr<arrow::Schema> schema, std::vector<Block> blocks);
  // What put_into_store() has made of them.
  explicit MemoryRows(Reference object);

  const std::shared_ptr<arrow::Schema>& schema() const { return schema_; }
  const std::vector<Block>& blocks() const { return blocks_; }
  Reference put_into_store();

 private:
  std::shared_ptr<arrow::Schema> schema_;
  std::vector<Block> blocks_;
  std::mutex mutex_;
  std::optional<ObjectRef> object_;     // as soon as they have been put
  std::optional<Reference> came_from_;  // where this process has no handle of it
};
struct FromMemory {
  std::shared_ptr<MemoryRows> rows;
};
struct Range {
  std::int64_t count = 0;
};
// A function or class of the program.
struct Call {
  std::string kind = {};  // as it is registered: "function", "class", "row function", "row predicate"
  std::string name = {};
  std::optional<std::int64_t> batch_size = {};
  std::optional<std::int64_t> concurrency = {};
  Resources resources = {};  // of a worker
  Config config = {};
};
struct Filter {
  Expression condition;
};
struct Select {
  Names columns = {};
};
struct Slice {
  std::int64_t skip = 0;
  std::optional<std::int64_t> count = {};
};
struct Concat {};
struct Shuffle {
  std::uint64_t seed = 0;
};

struct Node {
  std::variant<ReadFiles, FromMemory, Range, Call, Filter, Select, Slice, Concat, Shuffle> operation;
  std::vector<std::shared_ptr<const Node>> inputs = {};
};
using NodePtr = std::shared_ptr<const Node>;

// "map_batches(Predictor)" and the like, for people.
std::string to_string(const Node& node);

// The same rows with columns and conditions moved into the reads where that is possible.
NodePtr push_down(const NodePtr& node);

// ---- A plan: the tree, and how it is executed

struct PlanContent {
  NodePtr node;
  std::string name = {};
  ExecutionOptions options = {};
};

// The plan as a value. Rows in memory are put into the object store.
Value to_value(const PlanContent& plan);
// Throws InvalidArgument for a value that is no plan of this or an older version.
PlanContent to_plan(const Value& stored);

}  // namespace cadre::data

namespace cadre::data::detail {

// What the private files need of the public classes.
class PlanAccess {
 public:
  static const PlanContent& plan(const Dataset& dataset);
  static Dataset dataset(PlanContent plan);
  static void keep_stats(const Dataset& dataset, ExecutionStats stats);
  static Shard shard(const Dataset& dataset, const ShardOptions& options);
};

}  // namespace cadre::data::detail
