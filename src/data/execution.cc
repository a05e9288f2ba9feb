#include "data/execution.h"

#include <arrow/compute/expression.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <numeric>
#include <utility>

#include "base/overload.h"
#include "cadre/error.h"
#include "data/arrow_status.h"
#include "data/batch_memory.h"
#include "data/caller.h"
#include "data/compute.h"
#include "data/expressions.h"
#include "data/group_by.h"
#include "data/hash_join.h"
#include "data/interrupts.h"
#include "data/keys.h"
#include "data/shuffle.h"
#include "data/sort.h"
#include "data/stage.h"
#include "data/unified_schema.h"
#include "data/worker_pool.h"
#include "engine/local/local_engine.h"
#include "resources/control_group.h"

namespace cadre::data {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kMostBlockBytes = std::int64_t{1} << 20;  // larger ones are not faster
constexpr std::int64_t kLeastBlockBytes = std::int64_t{64} << 10;
constexpr std::int64_t kBatchesOfShare = 8;  // memory is held for all rows of a batch from its first one on
// A task gets as many batches as the function recently handled in this time. Then the overhead of a task does not
// matter, and at the end no worker waits long for the others.
constexpr Clock::duration kTaskTime = std::chrono::milliseconds(10);

// A transformation of each row by itself, in the thread that made the block.
using Step = std::function<Block(const Block& block)>;

Block do_steps(const std::vector<Step>& steps, Block block) {
  for (const Step& step : steps) block = step(block);
  return block;
}

// ---- Tasks

class ReadTasks final : public TaskSource {
 public:
  // `numbers`: the field of the row numbers that are added; null: none.
  ReadTasks(std::vector<Piece> pieces, const ReadContext& context, std::vector<Step> steps,
            std::shared_ptr<arrow::Field> numbers)
      : pieces_(std::move(pieces)), context_(context), steps_(std::move(steps)), numbers_(std::move(numbers)) {}

  std::optional<Task> next() override {
    if (at_ == pieces_.size()) return std::nullopt;
    const Piece& piece = pieces_[at_++];
    ReadContext context = context_;
    context.first_row = row_;
    if (piece.end) row_ += rows_of(piece);
    return Task{.bytes = std::min(piece.bytes, 2 * context_.block_bytes) + piece.overhead_bytes,
                .run = [this, &piece, context = std::move(context)](const Emit& emit) {
                  std::int64_t number = piece.first_number + piece.begin;
                  piece.reader->read(piece, context, [&](Block block) {
                    if (numbers_ != nullptr) block = add_numbers(block, number);
                    emit(do_steps(steps_, std::move(block)));
                  });
                }};
  }
  void cancel() override {}

 private:
  // Adds the numbers from `number` on, which is advanced to that of the next row.
  Block add_numbers(const Block& block, std::int64_t& number) const {
    std::vector<std::int64_t> numbers(static_cast<std::size_t>(block->num_rows()));
    std::iota(numbers.begin(), numbers.end(), number);
    number += block->num_rows();
    return checked(block->AddColumn(block->num_columns(), numbers_, Column(std::move(numbers)).arrow()),
                   "cannot number rows");
  }

  std::vector<Piece> pieces_;
  ReadContext context_;
  std::vector<Step> steps_;
  std::shared_ptr<arrow::Field> numbers_;
  std::size_t at_ = 0;
  std::int64_t row_ = 0;  // first one of the next piece
};

// Tasks that apply steps to another stream's blocks.
class StepTasks final : public TaskSource {
 public:
  StepTasks(std::unique_ptr<BlockStream> input, std::vector<Step> steps)
      : input_(std::move(input)), steps_(std::move(steps)) {}

  std::optional<Task> next() override {
    auto block = input_->next();
    if (!block) return std::nullopt;
    const std::int64_t bytes = bytes_of(*block);
    return Task{.bytes = bytes,
                .run = [this, block = *std::move(block)](const Emit& emit) { emit(do_steps(steps_, block)); }};
  }
  void cancel() override { input_->cancel(); }

 private:
  std::unique_ptr<BlockStream> input_;
  std::vector<Step> steps_;
};

// Tasks that call an operator's function with batches.
class CallTasks final : public TaskSource {
 public:
  struct Options {
    std::string name = {};  // of the operator
    std::int64_t workers = 1;
    std::int64_t most_bytes = 0;  // limit for a task with more than one batch
  };
  CallTasks(std::unique_ptr<BlockStream> input, std::unique_ptr<Callers> callers, std::vector<Step> steps,
            Options options)
      : input_(std::move(input)),
        callers_(std::move(callers)),
        steps_(std::move(steps)),
        options_(std::move(options)) {}

  std::optional<Task> next() override {
    begin();
    std::vector<Block> batches;
    std::int64_t bytes = 0;
    const std::int64_t most = batches_of_next_task();
    while (std::ssize(batches) < most && bytes < options_.most_bytes) {
      auto block = input_->next();
      if (!block) break;
      bytes += bytes_of(*block);
      batches.push_back(*std::move(block));
    }
    if (batches.empty()) return std::nullopt;
    auto lease = std::make_shared<Lease>(*this);
    return Task{.bytes = bytes, .run = [this, lease, batches = std::move(batches)](const Emit& emit) {
                  const Clock::duration taken = lease->call(batches, [&](const Block& block) {
                    require_same_result(block);
                    emit(do_steps(steps_, block));
                  });
                  see_time(taken / batches.size());
                }};
  }

  void cancel() override {
    input_->cancel();
    const std::lock_guard lock(mutex_);
    cancelled_ = true;
    for (const Worker& worker : workers_) worker.caller->cancel();
  }

 private:
  struct Worker {
    std::unique_ptr<Caller> caller;
    std::int64_t tasks = 0;  // assigned to it
  };
  // A task's reservation of a worker.
  class Lease {
   public:
    explicit Lease(CallTasks& tasks) : tasks_(tasks), caller_(tasks.take()), turn_(caller_.take_turn()) {}
    ~Lease() { tasks_.give_back(caller_); }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    Clock::duration call(std::span<const Block> batches, const Emit& emit) const {
      return caller_.call(turn_, batches, emit);
    }

   private:
    CallTasks& tasks_;
    Caller& caller_;
    std::int64_t turn_;
  };

  // Makes the workers when the first task is requested.
  void begin() {
    const std::lock_guard lock(mutex_);
    while (std::ssize(workers_) < options_.workers && !cancelled_) workers_.push_back({callers_->make()});
  }
  // Returns the least loaded worker. Each thread of the stage has at most one task, so there is room.
  Caller& take() {
    const std::lock_guard lock(mutex_);
    if (cancelled_) throw Cancelled{};
    Worker& least = *std::ranges::min_element(workers_, {}, &Worker::tasks);
    ++least.tasks;
    return *least.caller;
  }
  void give_back(const Caller& caller) {
    const std::lock_guard lock(mutex_);
    --std::ranges::find(workers_, &caller, [](const Worker& worker) { return worker.caller.get(); })->tasks;
  }
  // Adapts the size of tasks; `time` is the duration of one batch.
  void see_time(Clock::duration time) {
    const std::lock_guard lock(mutex_);
    batches_in_task_time_ = kTaskTime / std::max(time, Clock::duration(1));
  }
  std::int64_t batches_of_next_task() {
    const std::lock_guard lock(mutex_);
    return std::max<std::int64_t>(batches_in_task_time_, 1);
  }
  void require_same_result(const Block& block) {
    const std::lock_guard lock(mutex_);
    if (block->num_rows() == 0) return;
    if (schema_ == nullptr) schema_ = block->schema();
    if (block->schema()->Equals(*schema_, false)) return;
    throw DatasetError(fmt::format("{} has returned batches with different columns: {{{}}} and {{{}}}", options_.name,
                                   schema_->ToString(), block->schema()->ToString()));
  }

  std::unique_ptr<BlockStream> input_;
  std::unique_ptr<Callers> callers_;
  std::vector<Step> steps_;
  const Options options_;
  std::mutex mutex_;  // guards the following members
  std::int64_t batches_in_task_time_ = 1;
  std::vector<Worker> workers_;
  std::shared_ptr<arrow::Schema> schema_;  // of the function's results
  bool cancelled_ = false;
};

// ---- Analysis of plans

bool is_source(const Node& node) { return node.inputs.empty() && !std::holds_alternative<Concat>(node.operation); }

Source open_source(const Node& node) {
  return std::visit(
      base::Overload{[](const ReadFiles& read) { return open_files(read); },
                     [](const FromMemory& memory) { return open_memory(memory); },
                     [](const Range& range) { return open_range(range); }, [](const auto&) -> Source { return {}; }},
      node.operation);
}

// Returns true if a read has a condition, so that its pieces have fewer rows than they say.
bool has_filter(const Node& node) {
  const auto* read = std::get_if<ReadFiles>(&node.operation);
  if (read != nullptr) return read->filter.has_value();
  return std::ranges::any_of(node.inputs, [](const NodePtr& input) { return has_filter(*input); });
}

void add_calls(const Node& node, std::vector<const Node*>& calls) {
  for (const NodePtr& input : node.inputs) add_calls(*input, calls);
  if (std::holds_alternative<Call>(node.operation)) calls.push_back(&node);
}

std::vector<const Node*> calls_of(const Node& node) {
  std::vector<const Node*> calls;
  add_calls(node, calls);
  return calls;
}

// Returns nothing if the number is known only after reading.
std::optional<std::int64_t> known_rows(const Source& source) {
  if (!std::ranges::all_of(source.pieces, [](const Piece& piece) { return piece.rows.has_value(); })) return {};
  return rows_of(source.pieces);
}

// Returns the pieces of a node if its rows are exactly those of some pieces of its sources.
std::optional<Source> pieces_of(const Node& node);

std::optional<Source> pieces_of(const Node& node, const Slice& slice) {
  if (has_filter(*node.inputs.front())) return std::nullopt;
  auto source = pieces_of(*node.inputs.front());
  const auto known = source ? known_rows(*source) : std::nullopt;
  if (!known) return std::nullopt;
  const std::int64_t rows = *known;
  const std::int64_t begin = std::min(slice.skip, rows);
  source->pieces = cut(source->pieces, begin, begin + std::min(rows - begin, slice.count.value_or(rows)));
  return source;
}

std::optional<Source> pieces_of(const Node& node, const Concat&) {
  std::optional<Source> all;
  for (const NodePtr& input : node.inputs) {
    auto source = pieces_of(*input);
    if (!source || source->schema == nullptr) return std::nullopt;
    if (all && !all->schema->Equals(*source->schema, false)) return std::nullopt;
    if (!all) {
      all = std::move(source);
    } else {
      std::ranges::move(source->pieces, std::back_inserter(all->pieces));
    }
  }
  return all;
}

std::optional<Source> pieces_of(const Node& node) {
  if (is_source(node)) return open_source(node);
  if (const auto* slice = std::get_if<Slice>(&node.operation)) return pieces_of(node, *slice);
  if (const auto* concat = std::get_if<Concat>(&node.operation)) return pieces_of(node, *concat);
  return std::nullopt;
}

// Returns a schema with other names for some fields. `where` is where the schema comes from, for messages.
std::shared_ptr<arrow::Schema> renamed(const arrow::Schema& schema,
                                       const std::vector<std::pair<std::string, std::string>>& names,
                                       const std::string& where) {
  Names old_names;
  for (const auto& [old_name, new_name] : names) old_names.push_back(old_name);
  require_columns(schema, old_names, where);
  arrow::FieldVector fields = schema.fields();
  for (const auto& [old_name, new_name] : names) {
    const auto index = static_cast<std::size_t>(schema.GetFieldIndex(old_name));
    fields[index] = fields[index]->WithName(new_name);
  }
  Names now;
  for (const auto& field : fields) now.push_back(field->name());
  std::ranges::sort(now);
  if (const auto twice = std::ranges::adjacent_find(now); twice != now.end())
    throw InvalidArgument(fmt::format("rename_columns makes two columns \"{}\"", *twice));
  return arrow::schema(std::move(fields), schema.metadata());
}

// Counts the operators that have threads, or hold rows, at the same time.
std::int64_t count_stages(const Node& node) {
  std::int64_t below = 0;
  for (const NodePtr& input : node.inputs) {
    const std::int64_t of_input = count_stages(*input);
    below = std::holds_alternative<Zip>(node.operation) ? below + of_input : std::max(below, of_input);
  }
  const bool is_light =
      std::holds_alternative<Filter>(node.operation) || std::holds_alternative<Select>(node.operation) ||
      std::holds_alternative<Rename>(node.operation) || std::holds_alternative<Concat>(node.operation) ||
      std::holds_alternative<Sample>(node.operation) || std::holds_alternative<Zip>(node.operation) ||
      std::holds_alternative<RowNumbers>(node.operation);
  return below + (is_light ? 0 : 1);
}

// Throws InvalidArgument if the inputs of a zip are known to have different numbers of rows.
void require_equal_counts(const Node& zip) {
  std::optional<std::int64_t> first;
  for (std::size_t i = 0; i < zip.inputs.size(); ++i) {
    const auto count = known_count(zip.inputs[i]);
    if (!count) return;
    if (!first) first = count;
    if (*count != *first)
      throw InvalidArgument(
          fmt::format("zip needs datasets with equally many rows: the first one has {}, and dataset {} has {}; limit() "
                      "the longer one",
                      *first, i + 1, *count));
  }
}

}  // namespace

// ---- The stages of an execution

class Execution::Builder {
 public:
  Builder(Execution& execution, const PlanContent& plan, ChoosePieces choose, std::optional<std::int64_t> batch_rows,
          const CallContext& call_context)
      : execution_(execution),
        choose_(std::move(choose)),
        batch_rows_(batch_rows),
        call_context_(call_context),
        max_retries_(plan.options.max_task_retries),
        pool_(make_pool(plan)),
        threads_(thread_count(plan.options)),
        // One more share for the consumer of the blocks.
        share_(memory_limit(plan.options) / (count_stages(*plan.node) + 1)),
        context_{.pool = execution.pool(),
                 .block_bytes = std::clamp(share_ / (4 * threads_), kLeastBlockBytes, kMostBlockBytes)} {
    if (pool_ != nullptr) workers_ = plan_workers(calls_of(*plan.node), pool_->resources(), threads_);
  }

  // Builds the stream of a node followed by steps. Sets `schema` to the node's; the caller adds the steps' effect.
  std::unique_ptr<BlockStream> build(const NodePtr& node, std::vector<Step> steps,
                                     std::shared_ptr<arrow::Schema>& schema) {
    if (auto source = pieces_of(*node)) {
      if (choose_) source->pieces = choose_(std::move(source->pieces));
      return read(*std::move(source), std::move(steps), schema);
    }
    const bool has_rows_of_input = std::holds_alternative<Select>(node->operation) ||
                                   std::holds_alternative<Rename>(node->operation) ||
                                   std::holds_alternative<RowNumbers>(node->operation);
    if (!has_rows_of_input) batch_rows_.reset();
    return std::visit(
        base::Overload{
            [&](const Filter& filter) { return build_filter(node, filter, std::move(steps), schema); },
            [&](const Select& select) { return build_select(node, select, std::move(steps), schema); },
            [&](const Rename& rename) { return build_rename(node, rename, std::move(steps), schema); },
            [&](const Call& call) { return build_call(node, call, std::move(steps), schema); },
            [&](const Slice& slice) { return build_slice(node, slice, std::move(steps), schema); },
            [&](const Concat& concat) { return build_concat(node, concat, std::move(steps), schema); },
            [&](const Shuffle& shuffle) { return build_shuffle(node, shuffle, std::move(steps), schema); },
            [&](const Sample& sample) { return build_sample(node, sample, std::move(steps), schema); },
            [&](const Sort& sort) { return build_sort(node, sort, std::move(steps), schema); },
            [&](const GroupBy& group_by) { return build_group_by(node, group_by, std::move(steps), schema); },
            [&](const GroupBatches& groups) { return build_groups(node, groups, std::move(steps), schema); },
            [&](const Join& join) { return build_join(node, join, std::move(steps), schema); },
            [&](const Zip&) { return build_zip(node, std::move(steps), schema); },
            [&](const RowNumbers& numbers) { return build_numbers(node, numbers, std::move(steps), schema); },
            [&](const auto&) -> std::unique_ptr<BlockStream> { return nullptr; }},
        node->operation);
  }

 private:
  std::unique_ptr<BlockStream> read(Source source, std::vector<Step> steps, std::shared_ptr<arrow::Schema>& schema,
                                    const std::shared_ptr<arrow::Field>& numbers = nullptr) {
    schema = source.schema;
    const std::int64_t threads = std::clamp<std::int64_t>(std::ssize(source.pieces), 1, threads_);
    auto progress = execution_.progress_.add(source.name, threads);
    ReadContext context = context_;
    context.skipped = [progress](const std::string& error) { progress->skip(error); };
    context.batch_memory = make_batch_memory(source.pieces);
    auto tasks = std::make_unique<ReadTasks>(std::move(source.pieces), context, std::move(steps), numbers);
    return std::make_unique<Stage>(std::move(tasks), StageOptions{threads, share_}, std::move(progress));
  }

  // Returns nothing if rows are not known to be at fixed places of batches.
  std::shared_ptr<BatchMemory> make_batch_memory(const std::vector<Piece>& pieces) {
    const auto batch_rows = std::exchange(batch_rows_, std::nullopt);
    if (!batch_rows || !std::ranges::all_of(pieces, [](const Piece& piece) { return piece.end.has_value(); }))
      return nullptr;
    return std::make_shared<BatchMemory>(*batch_rows, share_ / kBatchesOfShare, context_.pool);
  }

  std::unique_ptr<BlockStream> stage(std::unique_ptr<TaskSource> tasks, std::int64_t threads, const std::string& name) {
    return std::make_unique<Stage>(std::move(tasks), StageOptions{threads, share_},
                                   execution_.progress_.add(name, threads));
  }

  std::unique_ptr<BlockStream> build_filter(const NodePtr& node, const Filter& filter, std::vector<Step> steps,
                                            std::shared_ptr<arrow::Schema>& schema) {
    const auto condition = std::make_shared<Expression>(filter.condition);
    steps.insert(steps.begin(), [condition, pool = Execution::pool()](const Block& block) {
      return keep_matching(block, bind_condition(*condition, block->schema()), pool);
    });
    auto stream = build(node->inputs.front(), std::move(steps), schema);
    if (schema != nullptr) bind_condition(filter.condition, schema);
    return stream;
  }

  std::unique_ptr<BlockStream> build_select(const NodePtr& node, const Select& select, std::vector<Step> steps,
                                            std::shared_ptr<arrow::Schema>& schema) {
    steps.insert(steps.begin(),
                 [columns = select.columns](const Block& block) { return Batch(block).select(columns).arrow(); });
    auto stream = build(node->inputs.front(), std::move(steps), schema);
    if (schema == nullptr) return stream;
    require_columns(*schema, select.columns, to_string(*node->inputs.front()));
    arrow::FieldVector fields;
    for (const std::string& column : select.columns) fields.push_back(schema->GetFieldByName(column));
    schema = arrow::schema(std::move(fields));
    return stream;
  }

  std::unique_ptr<BlockStream> build_rename(const NodePtr& node, const Rename& rename, std::vector<Step> steps,
                                            std::shared_ptr<arrow::Schema>& schema) {
    const std::string below = to_string(*node->inputs.front());
    steps.insert(steps.begin(), [names = rename.names, below](const Block& block) {
      return arrow::RecordBatch::Make(renamed(*block->schema(), names, below), block->num_rows(), block->columns());
    });
    auto stream = build(node->inputs.front(), std::move(steps), schema);
    if (schema != nullptr) schema = renamed(*schema, rename.names, below);
    return stream;
  }

  std::unique_ptr<BlockStream> build_numbers(const NodePtr& node, const RowNumbers& numbers, std::vector<Step> steps,
                                             std::shared_ptr<arrow::Schema>& schema) {
    auto source = has_filter(*node->inputs.front()) ? std::nullopt : pieces_of(*node->inputs.front());
    if (!source)
      throw InvalidArgument(
          fmt::format("with_row_numbers numbers the rows of a read, and cannot follow {}: call it before",
                      to_string(*node->inputs.front())));
    const auto field = arrow::field(numbers.column, arrow::int64());
    if (source->schema == nullptr) source->schema = arrow::schema(arrow::FieldVector{});
    if (source->schema->GetFieldIndex(numbers.column) >= 0)
      throw InvalidArgument(fmt::format("with_row_numbers: there is a column \"{}\" already", numbers.column));
    count_rows(source->pieces);
    std::int64_t number = 0;
    for (Piece& piece : source->pieces) {
      piece.first_number = number - piece.begin;
      number += rows_of(piece);
    }
    source->schema = checked(source->schema->AddField(source->schema->num_fields(), field), "cannot number rows");
    if (choose_) source->pieces = choose_(std::move(source->pieces));
    return read(*std::move(source), std::move(steps), schema, field);
  }

  std::unique_ptr<BlockStream> build_call(const NodePtr& node, const Call& call, std::vector<Step> steps,
                                          std::shared_ptr<arrow::Schema>& schema) {
    batch_rows_ = call.batch_size;
    auto input = build(node->inputs.front(), {}, schema);
    schema = nullptr;
    if (call.batch_size) input = std::make_unique<Rebatched>(std::move(input), *call.batch_size, execution_.pool());
    const std::int64_t workers =
        pool_ != nullptr ? workers_.at(node.get()) : call.concurrency.value_or(call.kind == "class" ? 1 : threads_);
    auto callers = pool_ != nullptr ? make_process_callers(*node, call_context_, max_retries_, pool_)
                                    : make_local_callers(*node, call_context_);
    const std::int64_t threads = workers * callers->tasks_in_flight();
    const std::string name = to_string(*node);
    auto tasks = std::make_unique<CallTasks>(
        std::move(input), std::move(callers), std::move(steps),
        CallTasks::Options{.name = name, .workers = workers, .most_bytes = context_.block_bytes});
    return std::make_unique<Stage>(std::move(tasks), StageOptions{threads, share_},
                                   execution_.progress_.add(name, workers));
  }

  std::unique_ptr<BlockStream> build_slice(const NodePtr& node, const Slice& slice, std::vector<Step> steps,
                                           std::shared_ptr<arrow::Schema>& schema) {
    auto stream = std::make_unique<Sliced>(build(node->inputs.front(), {}, schema), slice);
    return with_steps(std::move(stream), std::move(steps), *node);
  }

  std::unique_ptr<BlockStream> build_concat(const NodePtr& node, const Concat& concat, std::vector<Step> steps,
                                            std::shared_ptr<arrow::Schema>& schema) {
    // Known once all inputs are built, and before a block is made; null: blocks stay as they are.
    const auto unified = std::make_shared<std::shared_ptr<arrow::Schema>>();
    steps.insert(steps.begin(), [unified, pool = Execution::pool()](const Block& block) {
      return *unified == nullptr ? block : convert_block(block, *unified, pool, "concat cannot unify its datasets");
    });
    std::vector<std::unique_ptr<BlockStream>> inputs;
    std::vector<std::shared_ptr<arrow::Schema>> schemas;
    for (const NodePtr& input : node->inputs) {
      schemas.emplace_back();
      inputs.push_back(build(input, steps, schemas.back()));
    }
    if (concat.unify_schemas && !schemas.empty() && std::ranges::find(schemas, nullptr) == schemas.end()) {
      schema = unify(schemas);
      if (!std::ranges::all_of(schemas, [&](const auto& one) { return one->Equals(*schema, false); }))
        *unified = schema;
    } else {
      schema = first_schema(schemas);
    }
    return std::make_unique<Concatenated>(std::move(inputs));
  }

  // Returns the columns of all datasets of a concat.
  static std::shared_ptr<arrow::Schema> unify(const std::vector<std::shared_ptr<arrow::Schema>>& schemas) {
    UnifiedSchema unified("the datasets of concat",
                          "Select other columns, or make them alike in a function of batches");
    try {
      for (std::size_t i = 0; i < schemas.size(); ++i) unified.add(schemas[i], fmt::format("dataset {}", i + 1));
    } catch (const StorageError& error) {
      throw InvalidArgument(error.what());
    }
    return unified.schema();
  }

  // Returns the first known schema, with which the others must agree.
  static std::shared_ptr<arrow::Schema> first_schema(const std::vector<std::shared_ptr<arrow::Schema>>& schemas) {
    std::shared_ptr<arrow::Schema> first;
    for (const auto& own : schemas) {
      if (own != nullptr && first != nullptr)
        require_same_columns(*first, "the first one", *own, "one of the datasets that are concatenated");
      if (first == nullptr) first = own;
    }
    return first;
  }

  std::unique_ptr<BlockStream> build_shuffle(const NodePtr& node, const Shuffle& shuffle, std::vector<Step> steps,
                                             std::shared_ptr<arrow::Schema>& schema) {
    auto input = build(node->inputs.front(), {}, schema);
    const Shuffled::Options options{
        .seed = shuffle.seed, .limit_bytes = share_, .block_bytes = context_.block_bytes, .pool = context_.pool};
    auto stream = std::make_unique<Shuffled>(std::move(input), options, execution_.progress_.add("random_shuffle", 1));
    return with_steps(std::move(stream), std::move(steps), *node);
  }

  std::unique_ptr<BlockStream> build_sample(const NodePtr& node, const Sample& sample, std::vector<Step> steps,
                                            std::shared_ptr<arrow::Schema>& schema) {
    auto stream = std::make_unique<Sampled>(build(node->inputs.front(), {}, schema), sample, execution_.pool());
    return with_steps(std::move(stream), std::move(steps), *node);
  }

  std::unique_ptr<BlockStream> build_sort(const NodePtr& node, const Sort& sort, std::vector<Step> steps,
                                          std::shared_ptr<arrow::Schema>& schema) {
    auto input = build(node->inputs.front(), {}, schema);
    if (schema != nullptr) require_sort_keys(*schema, sort.keys);
    const Sorted::Options options{
        .keys = sort.keys, .limit_bytes = share_, .block_bytes = context_.block_bytes, .pool = context_.pool};
    auto stream = std::make_unique<Sorted>(std::move(input), options, execution_.progress_.add("sort", 1));
    return with_steps(std::move(stream), std::move(steps), *node);
  }

  std::unique_ptr<BlockStream> build_group_by(const NodePtr& node, const GroupBy& group_by, std::vector<Step> steps,
                                              std::shared_ptr<arrow::Schema>& schema) {
    auto input = build(node->inputs.front(), {}, schema);
    if (schema != nullptr) schema = schema_of(group_by, *schema);
    const Grouped::Options options{
        .group_by = group_by, .limit_bytes = share_, .block_bytes = context_.block_bytes, .pool = context_.pool};
    auto stream = std::make_unique<Grouped>(std::move(input), options, execution_.progress_.add("groupby", 1));
    return with_steps(std::move(stream), std::move(steps), *node);
  }

  std::unique_ptr<BlockStream> build_groups(const NodePtr& node, const GroupBatches& groups, std::vector<Step> steps,
                                            std::shared_ptr<arrow::Schema>& schema) {
    auto input = build(node->inputs.front(), {}, schema);
    if (schema != nullptr) require_keys(*schema, groups.keys, "map_groups");
    auto stream = std::make_unique<GroupBlocks>(std::move(input), groups.keys, share_, execution_.pool());
    return with_steps(std::move(stream), std::move(steps), *node);
  }

  std::unique_ptr<BlockStream> build_join(const NodePtr& node, Join join, std::vector<Step> steps,
                                          std::shared_ptr<arrow::Schema>& schema) {
    NodePtr left = node->inputs.front();
    NodePtr right = node->inputs.back();
    if (join.kind == JoinType::right_semi || join.kind == JoinType::right_anti) {
      join.kind = join.kind == JoinType::right_semi ? JoinType::left_semi : JoinType::left_anti;
      std::swap(left, right);
      std::swap(join.left_on, join.right_on);
    }
    HashJoined::Options options{
        .join = join, .limit_bytes = share_, .block_bytes = context_.block_bytes, .pool = context_.pool};
    auto right_stream = build(right, {}, options.right_schema);
    auto left_stream = build(left, {}, options.left_schema);
    if (options.left_schema != nullptr && options.right_schema != nullptr) {
      arrow::FieldVector fields;
      for (const JoinedColumn& column : columns_of(join, *options.left_schema, *options.right_schema))
        fields.push_back(column.field);
      schema = arrow::schema(std::move(fields));
    } else {
      schema = nullptr;
    }
    auto stream = std::make_unique<HashJoined>(std::move(left_stream), std::move(right_stream), std::move(options),
                                               execution_.progress_.add("join", 1));
    return with_steps(std::move(stream), std::move(steps), *node);
  }

  std::unique_ptr<BlockStream> build_zip(const NodePtr& node, std::vector<Step> steps,
                                         std::shared_ptr<arrow::Schema>& schema) {
    std::vector<std::unique_ptr<BlockStream>> inputs;
    std::vector<std::shared_ptr<arrow::Schema>> schemas;
    for (const NodePtr& input : node->inputs) {
      inputs.push_back(build(input, {}, schema));
      schemas.push_back(schema);
    }
    require_equal_counts(*node);
    const bool are_known = std::ranges::none_of(schemas, [](const auto& one) { return one == nullptr; });
    schema = are_known ? zipped_schema(schemas) : nullptr;
    return with_steps(std::make_unique<Zipped>(std::move(inputs)), std::move(steps), *node);
  }

  std::unique_ptr<BlockStream> with_steps(std::unique_ptr<BlockStream> stream, std::vector<Step> steps,
                                          const Node& node) {
    if (steps.empty()) return stream;
    return stage(std::make_unique<StepTasks>(std::move(stream), std::move(steps)), threads_,
                 "after " + to_string(node));
  }

  Execution& execution_;
  ChoosePieces choose_;
  std::optional<std::int64_t> batch_rows_;  // of the stream that is built next
  CallContext call_context_;
  std::int64_t max_retries_;
  std::shared_ptr<WorkerPool> pool_;  // null: functions run in threads
  std::map<const Node*, std::int64_t> workers_;
  std::int64_t threads_;
  std::int64_t share_;  // memory limit of a stage, in bytes
  ReadContext context_;
};

Execution::Execution(const PlanContent& plan, ChoosePieces choose, std::optional<std::int64_t> batch_rows,
                     const CallContext& context)
    : progress_(plan.name, memory_limit(plan.options), plan.options.progress_bars.value_or(::isatty(2) == 1)) {
  const PlanContent pushed{push_down(plan.node), plan.name, plan.options};
  stream_ = Builder(*this, pushed, std::move(choose), batch_rows, context).build(pushed.node, {}, schema_);
}

Execution::~Execution() {
  stream_.reset();
  progress_.report_skipped();
}

std::shared_ptr<WorkerPool> Execution::make_pool(const PlanContent& plan) {
  const FunctionPlace place = plan.options.function_place;
  const std::vector<const Node*> calls = calls_of(*plan.node);
  if (place == FunctionPlace::threads || calls.empty()) return nullptr;
  const bool uses_gpus =
      std::ranges::any_of(calls, [](const Node* node) { return std::get<Call>(node->operation).resources.gpus > 0; });
  try {
    return std::make_shared<WorkerPool>(uses_gpus);
  } catch (const EngineError&) {
    if (place == FunctionPlace::processes) throw;
    return nullptr;
  }
}

std::optional<Block> Execution::next() {
  progress_.show();
  check_interrupts_at_times();
  return stream_->next();
}

void Execution::cancel() { stream_->cancel(); }

// ---- Facts about a plan without running it

Source shared_source(const NodePtr& node) {
  if (auto source = pieces_of(*node)) {
    count_rows(source->pieces);
    return *std::move(source);
  }
  const bool is_of_each_row =
      std::holds_alternative<Call>(node->operation) || std::holds_alternative<Filter>(node->operation) ||
      std::holds_alternative<Select>(node->operation) || std::holds_alternative<Rename>(node->operation) ||
      std::holds_alternative<RowNumbers>(node->operation);
  if (!is_of_each_row)
    throw InvalidArgument(
        fmt::format("a dataset with {} after other operators cannot be shared by ranks, which share what is read: "
                    "materialize() it, or write it to files, and share that",
                    to_string(*node)));
  return shared_source(node->inputs.front());
}

bool keeps_rows(const NodePtr& node) {
  if (has_filter(*node) || std::holds_alternative<Filter>(node->operation) ||
      std::holds_alternative<Sample>(node->operation) || std::holds_alternative<GroupBy>(node->operation) ||
      std::holds_alternative<Join>(node->operation))
    return false;
  if (const auto* call = std::get_if<Call>(&node->operation); call != nullptr && call->kind != "row function")
    return false;
  return std::ranges::all_of(node->inputs, keeps_rows);
}

std::optional<std::int64_t> stored_count(const NodePtr& node) {
  if (!keeps_rows(node)) return std::nullopt;
  const auto source = pieces_of(*node);
  return source ? known_rows(*source) : std::nullopt;
}

std::optional<std::int64_t> known_count(const NodePtr& node) {
  if (!keeps_rows(node)) return std::nullopt;
  if (const auto source = pieces_of(*node)) return known_rows(*source);
  if (std::holds_alternative<Zip>(node->operation)) return known_count(node->inputs.front());
  std::int64_t count = 0;
  for (const NodePtr& input : node->inputs) {
    const auto rows = known_count(input);
    if (!rows) return std::nullopt;
    count += *rows;
  }
  if (const auto* slice = std::get_if<Slice>(&node->operation)) {
    count -= std::min(count, slice->skip);
    count = std::min(count, slice->count.value_or(count));
  }
  return count;
}

std::int64_t memory_limit(const ExecutionOptions& options) {
  if (options.memory_limit_bytes) return *options.memory_limit_bytes;
  constexpr std::int64_t kMost = std::int64_t{2} << 30;
  const std::int64_t machine = std::int64_t{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGESIZE);
  const std::optional<resources::GroupMemory> group = resources::group_limits().memory;
  const std::uint64_t most = group ? group->limit_bytes : std::numeric_limits<std::uint64_t>::max();
  const auto usable = static_cast<std::int64_t>(std::min(static_cast<std::uint64_t>(machine), most));
  return std::min(usable / 4, kMost);
}

std::int64_t thread_count(const ExecutionOptions& options) {
  return options.num_threads.value_or(static_cast<std::int64_t>(engine::local::machine_resources().cpus));
}

}  // namespace cadre::data
