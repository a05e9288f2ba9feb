// The plan of a dataset: a tree of immutable operators, and its form as a value.
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
#include "cadre/data/image.h"
#include "cadre/function.h"
#include "cadre/object.h"
#include "cadre/value.h"

namespace cadre::data {

using Block = std::shared_ptr<arrow::RecordBatch>;  // never null
using Names = std::vector<std::string>;

// ---- Operators

struct ReadFiles {
  enum class Format { parquet, csv, json, images, binary_files, text, numpy, tf_records, webdataset };
  Format format = Format::parquet;
  Names paths = {};                       // absolute paths or URIs of files, folders and patterns
  std::optional<Names> columns = {};      // empty: all
  std::optional<Expression> filter = {};  // Parquet only
  bool hive_partitioning = true;
  bool unify_schemas = true;  // false: files whose columns differ are refused
  char delimiter = ',';       // for CSV, like column_names
  Names column_names = {};
  std::vector<std::pair<std::string, std::string>> types = {};  // for text files
  // The following are for the formats from `images` on.
  std::optional<Names> endings = {};  // of files in folders, without the dot; empty: those of the format
  std::optional<Names> levels = {};   // columns for the folders below a path, from the outermost on
  bool include_paths = false;
  bool ignore_missing_paths = false;
  bool skip_damaged = false;
  bool drop_empty_lines = true;  // for text
  bool decode = true;            // for webdataset, like `suffixes`
  Names suffixes = {};           // names and patterns; none: all
  ImageMode image_mode = ImageMode::stored;
  std::int64_t image_height = 0;  // 0: each image's own, like the width
  std::int64_t image_width = 0;
  std::optional<bool> equal_shapes = {};  // of images
};
// Rows held by this process, shared by all plans that contain them.
class MemoryRows {
 public:
  MemoryRows(std::shared_ptr<arrow::Schema> schema, std::vector<Block> blocks);
  // Reads the rows that put_into_store() has stored.
  explicit MemoryRows(Reference object);

  const std::shared_ptr<arrow::Schema>& schema() const { return schema_; }
  const std::vector<Block>& blocks() const { return blocks_; }
  Reference put_into_store();

 private:
  std::shared_ptr<arrow::Schema> schema_;
  std::vector<Block> blocks_;
  std::mutex mutex_;
  std::optional<ObjectRef> object_;     // set once the rows have been put
  std::optional<Reference> came_from_;  // set if this process has no handle of the object
};
struct FromMemory {
  std::shared_ptr<MemoryRows> rows;
};
struct Range {
  std::int64_t count = 0;
};
// A call of a function or class of the program.
struct Call {
  // Registered as "function", "class", "row function", "row predicate" or "function of row to rows".
  std::string kind = {};
  std::string name = {};
  std::optional<std::int64_t> batch_size = {};
  std::optional<std::int64_t> concurrency = {};
  Resources resources = {};  // of a worker
  Config config = {};
  HostFunction host_function = {};  // set if it is one of a host
};
struct Filter {
  Expression condition = true;
};
struct Select {
  Names columns = {};
};
struct Rename {
  std::vector<std::pair<std::string, std::string>> names = {};  // old and new
};
struct Slice {
  std::int64_t skip = 0;
  std::optional<std::int64_t> count = {};
};
struct Concat {
  bool unify_schemas = false;  // false: datasets whose columns differ are refused
};
// Adds the number of each row among those of a read.
struct RowNumbers {
  std::string column = {};
};
struct Shuffle {
  std::uint64_t seed = 0;
};
struct Sample {
  double fraction = 0;
  std::uint64_t seed = 0;
};
struct Sort {
  std::vector<SortKey> keys = {};
};
// A row for each group.
struct GroupBy {
  Names keys = {};
  std::vector<Aggregate> aggregates = {};
  AggregateOptions options = {};
};
// A block for each group of rows with equal keys that follow each other.
struct GroupBatches {
  Names keys = {};
};
// The first input is the left one. A right semi or anti join is a left one of the other input.
struct Join {
  JoinType kind = JoinType::inner;
  Names left_on = {};
  Names right_on = {};
  std::string left_suffix = {};
  std::string right_suffix = {};
};
struct Zip {};

struct Node {
  std::variant<ReadFiles, FromMemory, Range, Call, Filter, Select, Rename, Slice, Concat, Shuffle, Sample, Sort,
               GroupBy, GroupBatches, Join, Zip, RowNumbers>
      operation;
  std::vector<std::shared_ptr<const Node>> inputs = {};
};
using NodePtr = std::shared_ptr<const Node>;

// Throws InvalidArgument, with all faults, if what an operator was given suits no dataset.
void require_valid(const Node& node);

// Returns "map_batches(Predictor)" and the like, for messages.
std::string to_string(const Node& node);

// Returns a plan for the same rows, with columns and conditions moved into the reads if possible; only the columns that
// a groupby uses reach it.
NodePtr push_down(const NodePtr& node);

// ---- A plan: the tree, and how it is executed

struct PlanContent {
  NodePtr node;
  std::string name = {};
  ExecutionOptions options = {};
};

// Returns the plan as a value. Puts rows in memory into the object store.
Value to_value(const PlanContent& plan);
// Throws InvalidArgument if the value is not a plan of this version.
PlanContent to_plan(const Value& stored);

}  // namespace cadre::data

namespace cadre::data::detail {

// Access to private parts of the public classes, for the private files.
class PlanAccess {
 public:
  static const PlanContent& plan(const Dataset& dataset);
  static Dataset dataset(PlanContent plan);
  // Returns the dataset with one more operator, whose first input it is. Throws the errors of require_valid().
  static Dataset append(const Dataset& dataset, decltype(Node::operation) operation,
                        const std::vector<Dataset>& other_inputs = {});
  static void keep_stats(const Dataset& dataset, ExecutionStats stats);
  static Shard shard(const Dataset& dataset, const ShardOptions& options);
};

}  // namespace cadre::data::detail
