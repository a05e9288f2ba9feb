#include "cadre/data/iterate.h"

#include <arrow/array.h>
#include <arrow/record_batch.h>
#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <numeric>
#include <span>
#include <thread>
#include <utility>

#include "base/checksum.h"
#include "base/random.h"
#include "cadre/data/dataset.h"
#include "data/compute.h"
#include "data/execution.h"
#include "data/files.h"
#include "data/interrupts.h"
#include "data/shard_position.h"
#include "data/stream.h"

namespace cadre::data {
namespace {

constexpr std::int64_t kPositionVersion = 1;
constexpr std::size_t kMostNamedFiles = 1000;  // of a position, which otherwise cannot name the one that has changed

// Returns a checksum of the pieces' numbers of rows, or of the files' sizes.
std::int64_t digest_of(const std::vector<std::int64_t>& numbers) {
  const auto bytes = std::as_bytes(std::span(numbers));
  return static_cast<std::int64_t>(base::checksum_of({reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
}

// Returns the files that a plan reads, in the order of its rows.
std::vector<InputFile> files_of(const Node& node) {
  std::vector<InputFile> files;
  if (const auto* read = std::get_if<ReadFiles>(&node.operation)) files = find_files(*read);
  for (const NodePtr& input : node.inputs) std::ranges::move(files_of(*input), std::back_inserter(files));
  return files;
}

Value summary_of_files(const std::vector<std::int64_t>& sizes) {
  List named;
  if (sizes.size() <= kMostNamedFiles) {
    for (const std::int64_t size : sizes) named.emplace_back(size);
  }
  return {{"count", std::ssize(sizes)}, {"digest", digest_of(sizes)}, {"sizes", std::move(named)}};
}

// Returns how the files of a plan differ from those of a summary; empty: they have the same sizes.
std::string change_of_files(const Config& summary, const std::vector<std::int64_t>& sizes, const Node& node) {
  const auto count = summary.get<std::int64_t>("count");
  if (count != std::ssize(sizes)) return fmt::format("there were {} files, and there are {} now", count, sizes.size());
  if (summary.get<std::int64_t>("digest") == digest_of(sizes)) return "";
  const auto former = summary.get<std::vector<std::int64_t>>("sizes");
  const std::vector<InputFile> files = files_of(node);
  for (std::size_t i = 0; i < std::min({files.size(), sizes.size(), former.size()}); ++i) {
    if (former[i] != sizes[i])
      return fmt::format("{} has been written again: it has {} bytes, and had {}", files[i].shown, sizes[i], former[i]);
  }
  return "some of the files have been written again: they have other sizes";
}

// Returns true if some rows of the epoch have been taken, and others have not.
bool is_within_epoch(const ShardPosition& at, std::int64_t rows) {
  const bool has_begun = at.taken > 0 || at.ranges != RowRanges{RowRange{0, rows}};
  return has_begun && at.taken < rows_of(share_of(at, 0));
}

// A stream of an execution's blocks that does not own the execution.
class OfExecution final : public BlockStream {
 public:
  explicit OfExecution(Execution& execution) : execution_(execution) {}
  std::optional<Block> next() override { return execution_.next(); }
  void cancel() override { execution_.cancel(); }

 private:
  Execution& execution_;
};

// A stream that permutes the rows of each block, depending on the seed, the epoch and the block's number.
class Permuted final : public BlockStream {
 public:
  Permuted(std::unique_ptr<BlockStream> input, std::uint64_t seed, std::uint64_t epoch, std::int64_t first_block,
           arrow::MemoryPool* pool)
      : input_(std::move(input)), seed_(seed), epoch_(epoch), number_(first_block), pool_(pool) {}

  std::optional<Block> next() override {
    const auto block = input_->next();
    if (!block) return std::nullopt;
    const auto rows = static_cast<std::size_t>((*block)->num_rows());
    std::vector<std::int64_t> order(rows);
    std::iota(order.begin(), order.end(), std::int64_t{0});
    base::RandomStream random(seed_, static_cast<std::uint32_t>(epoch_), base::Purpose::dataset_local_shuffle,
                              static_cast<std::uint64_t>(number_++) << 32);
    for (std::size_t left = rows; left > 1; --left) std::swap(order[left - 1], order[random.below(left)]);
    const auto indices =
        std::make_shared<arrow::Int64Array>((*block)->num_rows(), arrow::Buffer::FromVector(std::move(order)));
    return take_rows(*block, indices, pool_);
  }
  void cancel() override { input_->cancel(); }

 private:
  std::unique_ptr<BlockStream> input_;
  std::uint64_t seed_;
  std::uint64_t epoch_;
  std::int64_t number_;
  arrow::MemoryPool* pool_;
};

// A stream whose blocks a thread produces ahead of the consumer.
class Prefetched final : public BlockStream {
 public:
  Prefetched(std::unique_ptr<BlockStream> input, std::int64_t ahead)
      : input_(std::move(input)), ahead_(static_cast<std::size_t>(ahead)) {}
  ~Prefetched() override {
    cancel();
    if (thread_.joinable()) thread_.join();
  }
  Prefetched(const Prefetched&) = delete;
  Prefetched& operator=(const Prefetched&) = delete;

  std::optional<Block> next() override {
    if (!thread_.joinable()) thread_ = std::thread([this] { work(); });
    std::unique_lock lock(mutex_);
    while (made_.empty() && !finished_) wait_with_checks(changed_, lock);
    if (made_.empty()) {
      if (error_) std::rethrow_exception(error_);
      return std::nullopt;
    }
    Block block = std::move(made_.front());
    made_.pop_front();
    changed_.notify_all();
    return block;
  }
  void cancel() override {
    {
      const std::lock_guard lock(mutex_);
      cancelled_ = true;
    }
    changed_.notify_all();
    input_->cancel();
  }

 private:
  void work() {
    try {
      while (auto block = input_->next()) {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return made_.size() < ahead_ || cancelled_; });
        if (cancelled_) throw Cancelled{};
        made_.push_back(*std::move(block));
        changed_.notify_all();
      }
    } catch (...) {
      const std::lock_guard lock(mutex_);
      error_ = std::current_exception();
    }
    const std::lock_guard lock(mutex_);
    finished_ = true;
    changed_.notify_all();
  }

  std::unique_ptr<BlockStream> input_;
  std::size_t ahead_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Block> made_;
  bool finished_ = false;
  bool cancelled_ = false;
  std::exception_ptr error_;
  std::thread thread_;
};

void check_options(const IterBatchesOptions& options, bool is_of_shard) {
  std::string faults;
  const auto require = [&](bool holds, const std::string& what) {
    if (!holds) faults += "\n  " + what;
  };
  require(options.batch_size.value_or(1) > 0,
          fmt::format("batch_size is {}; it must be above 0", options.batch_size.value_or(1)));
  require(options.batch_size || !options.drop_last, "drop_last needs a batch_size");
  require(options.prefetch_batches >= 0,
          fmt::format("prefetch_batches is {}; it must be 0 or more", options.prefetch_batches));
  require(options.local_shuffle_buffer_size.value_or(1) > 0,
          fmt::format("local_shuffle_buffer_size is {}; it must be above 0",
                      options.local_shuffle_buffer_size.value_or(1)));
  require(options.batch_size || !options.local_shuffle_buffer_size, "local_shuffle_buffer_size needs a batch_size");
  require(!is_of_shard || options.epoch == 0,
          fmt::format("epoch is {}; a shard has its own epoch, which set_epoch() sets", options.epoch));
  if (!faults.empty()) throw InvalidArgument("iter_batches cannot begin:" + faults);
}

}  // namespace

// ---- Shards

struct Shard::State {
  Dataset dataset;
  ShardOptions options;
  ShardPosition position = {};
  std::vector<std::int64_t> piece_rows = {};  // rows of each of the dataset's pieces; empty: unknown
  std::vector<std::int64_t> file_sizes = {};  // bytes of the files that it reads
  bool at_end = false;                        // true at the end of the epoch: the next loop repeats it

  std::int64_t rank() const { return options.rank; }
  void find_pieces();
  void begin_epoch(std::uint64_t epoch);
  // Returns the choice of pieces for these rows of the epoch's order.
  ChoosePieces choice_of(const RowRanges& rows) const;
};

void Shard::State::find_pieces() {
  if (!piece_rows.empty()) return;
  const NodePtr node = push_down(detail::PlanAccess::plan(dataset).node);
  file_sizes.clear();
  for (const InputFile& file : files_of(*node)) file_sizes.push_back(file.size);
  for (const Piece& piece : shared_source(node).pieces) piece_rows.push_back(rows_of(piece));
  begin_epoch(position.epoch);
}

void Shard::State::begin_epoch(std::uint64_t epoch) {
  const std::int64_t rows = std::accumulate(piece_rows.begin(), piece_rows.end(), std::int64_t{0});
  position = {.epoch = epoch, .world_size = options.world_size, .equal = options.equal, .ranges = {{0, rows}}};
  at_end = false;
}

ChoosePieces Shard::State::choice_of(const RowRanges& rows) const {
  std::vector<std::size_t> order(piece_rows.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (options.shuffle) order = epoch_order(piece_rows.size(), options.seed, position.epoch);
  return [order = std::move(order), counts = piece_rows, rows](std::vector<Piece> pieces) {
    const auto refuse = [](const std::string& what) {
      throw StorageError("the files of a dataset have changed since its rows were shared: they have " + what +
                         ". Make the shard again, which begins an epoch with the files as they are now");
    };
    if (pieces.size() != counts.size()) refuse(fmt::format("{} pieces, and had {}", pieces.size(), counts.size()));
    std::vector<Piece> in_order;
    for (const std::size_t number : order) {
      Piece& piece = pieces[number];
      if (!piece.rows) piece.rows = piece.end = counts[number];
      if (rows_of(piece) != counts[number])
        refuse(fmt::format("{} rows in piece {}, and had {}", rows_of(piece), number, counts[number]));
      in_order.push_back(std::move(piece));
    }
    std::vector<Piece> chosen;
    for (const RowRange& range : rows)
      std::ranges::move(cut(in_order, range.begin, range.end), std::back_inserter(chosen));
    return chosen;
  };
}

Shard detail::PlanAccess::shard(const Dataset& dataset, const ShardOptions& options) {
  if (options.world_size < 1 || options.rank < 0 || options.rank >= options.world_size)
    throw InvalidArgument(
        fmt::format("there is no rank {} of {}: ranks go from 0 to world_size - 1", options.rank, options.world_size));
  return Shard(std::make_shared<Shard::State>(Shard::State{dataset, options}));
}

std::int64_t Shard::size() const {
  state_->find_pieces();
  ShardPosition whole = state_->position;
  whole.ranges = {{0, std::accumulate(state_->piece_rows.begin(), state_->piece_rows.end(), std::int64_t{0})}};
  return rows_of(share_of(whole, state_->rank()));
}

void Shard::set_epoch(std::uint64_t epoch) { state_->begin_epoch(epoch); }

std::uint64_t Shard::epoch() const { return state_->position.epoch; }

Value Shard::position() const {
  state_->find_pieces();
  const ShardPosition& at = state_->position;
  List ranges;
  for (const RowRange& range : at.ranges) ranges.push_back(list(range.begin, range.end));
  return {{"version", kPositionVersion},
          {"epoch", at.epoch},
          {"world_size", at.world_size},
          {"equal", at.equal},
          {"ranges", std::move(ranges)},
          {"taken", at.taken},
          {"rows", std::accumulate(state_->piece_rows.begin(), state_->piece_rows.end(), std::int64_t{0})},
          {"seed", static_cast<std::int64_t>(state_->options.seed)},
          {"shuffle", state_->options.shuffle},
          {"pieces", digest_of(state_->piece_rows)},
          {"files", summary_of_files(state_->file_sizes)}};
}

void Shard::set_position(const Value& stored) {
  state_->find_pieces();
  const auto refuse = [](const std::string& why) {
    throw InvalidArgument("the shard cannot go on at that position: " + why);
  };
  const auto shared_anew = [&](const ShardPosition& at, const std::string& why) {
    if (!keeps_rows(push_down(detail::PlanAccess::plan(state_->dataset).node)))
      refuse(why + "; rows are shared anew only where no function or condition changes their number");
    return reshared(at, state_->options.world_size, state_->options.equal);
  };
  try {
    const Config entries(stored);
    if (entries.get<std::int64_t>("version") > kPositionVersion) refuse("it is of a newer version of Cadre");
    ShardPosition at{.epoch = entries.get<std::uint64_t>("epoch"),
                     .world_size = entries.get<std::int64_t>("world_size"),
                     .equal = entries.get<bool>("equal"),
                     .taken = entries.get<std::int64_t>("taken")};
    const std::int64_t rows = std::accumulate(state_->piece_rows.begin(), state_->piece_rows.end(), std::int64_t{0});
    if (const auto of = entries.get<std::int64_t>("rows"); of != rows)
      refuse(fmt::format("it is of a dataset with {} rows, and this one has {}", of, rows));
    for (const auto& range : entries.get<std::vector<std::vector<std::int64_t>>>("ranges")) {
      if (range.size() != 2 || range[0] < 0 || range[0] > range[1] || range[1] > rows) refuse("its rows are not there");
      if (!at.ranges.empty() && range[0] < at.ranges.back().end) refuse("it has rows twice");
      at.ranges.push_back({range[0], range[1]});
    }
    if (at.world_size < 1 || at.taken < 0) refuse("it is none");
    if (entries.get<std::int64_t>("seed") != static_cast<std::int64_t>(state_->options.seed) ||
        entries.get<bool>("shuffle") != state_->options.shuffle)
      refuse("it was saved with another seed or shuffle");
    // The order of other pieces would be another one. Positions of earlier versions do not have them.
    const std::int64_t pieces = digest_of(state_->piece_rows);
    if (state_->options.shuffle && entries.get<std::int64_t>("pieces", pieces) != pieces)
      refuse(
          "the files, or their row groups, have other numbers of rows than when it was saved, so that their order is "
          "another one; begin an epoch, or bring the former files back");
    if (entries.contains("files") && is_within_epoch(at, rows)) {
      const std::string change = change_of_files(Config(entries.at("files")), state_->file_sizes,
                                                 *detail::PlanAccess::plan(state_->dataset).node);
      if (!change.empty())
        refuse(change + ", so that rows may come twice or not at all; begin an epoch, or bring the former files back");
    }
    const std::int64_t world_size = state_->options.world_size;
    const bool equal = state_->options.equal;
    if (at.world_size != world_size) {
      at = shared_anew(at, fmt::format("it was saved by {} ranks and there are {} now", at.world_size, world_size));
    } else if (at.equal != equal && rows_of(at.ranges) % world_size != 0) {
      at = shared_anew(at, fmt::format("it was saved with `equal` {}, and that is {} now", at.equal, equal));
    }
    at.equal = equal;
    state_->position = std::move(at);
    state_->at_end = false;
  } catch (const NotFound& error) {
    refuse(error.what());
  }
}

// ---- Loops

struct Batches::Recipe {
  Dataset dataset;
  IterBatchesOptions options;
  std::shared_ptr<Shard::State> shard = {};  // null: all rows
};

Batches Shard::iter_batches(const IterBatchesOptions& options) const {
  check_options(options, true);
  return Batches(std::make_shared<const Batches::Recipe>(Batches::Recipe{state_->dataset, options, state_}));
}

Batches Dataset::iter_batches(const IterBatchesOptions& options) const {
  check_options(options, false);
  return Batches(std::make_shared<const Batches::Recipe>(Batches::Recipe{*this, options}));
}

struct Batches::Iterator::State {
  explicit State(std::shared_ptr<const Recipe> of) : recipe(std::move(of)) {
    begin();
    advance();
  }
  ~State() {
    if (stream != nullptr) stream->cancel();
    stream.reset();
    if (execution != nullptr) detail::PlanAccess::keep_stats(recipe->dataset, execution->stats());
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  void begin();
  void advance();

  std::shared_ptr<const Recipe> recipe;
  std::unique_ptr<Execution> execution;
  std::unique_ptr<BlockStream> stream;  // null: the loop is over
  Batch batch;
};

void Batches::Iterator::State::begin() {
  const IterBatchesOptions& options = recipe->options;
  const PlanContent& plan = detail::PlanAccess::plan(recipe->dataset);
  const std::int64_t window = options.local_shuffle_buffer_size.value_or(1);
  const auto batch_rows = options.local_shuffle_buffer_size ? options.local_shuffle_buffer_size : options.batch_size;
  std::uint64_t epoch = options.epoch;
  std::int64_t skipped = 0;  // rows that are not read
  std::int64_t dropped = 0;  // rows that are read and dropped
  if (Shard::State* shard = recipe->shard.get()) {
    shard->find_pieces();
    if (shard->at_end) shard->begin_epoch(shard->position.epoch);
    epoch = shard->position.epoch;
    dropped = shard->position.taken;
    if (keeps_rows(push_down(plan.node))) {  // whole windows need not be read
      skipped = dropped / window * window;
      dropped -= skipped;
    }
    const RowRanges share = share_of(shard->position, shard->rank());
    execution = std::make_unique<Execution>(plan, shard->choice_of(part_of(share, skipped, rows_of(share))), batch_rows,
                                            CallContext{epoch});
  } else {
    execution = std::make_unique<Execution>(plan, ChoosePieces(), batch_rows, CallContext{epoch});
  }
  stream = std::make_unique<OfExecution>(*execution);
  if (options.local_shuffle_buffer_size) {
    stream = std::make_unique<Rebatched>(std::move(stream), window, execution->pool());
    stream = std::make_unique<Permuted>(std::move(stream), options.local_shuffle_seed, epoch, skipped / window,
                                        execution->pool());
  }
  if (dropped > 0) stream = std::make_unique<Sliced>(std::move(stream), Slice{.skip = dropped});
  if (options.batch_size)
    stream = std::make_unique<Rebatched>(std::move(stream), *options.batch_size, execution->pool());
  if (options.prefetch_batches > 0) stream = std::make_unique<Prefetched>(std::move(stream), options.prefetch_batches);
}

void Batches::Iterator::State::advance() {
  auto block = stream->next();
  const IterBatchesOptions& options = recipe->options;
  if (block && options.drop_last && (*block)->num_rows() < *options.batch_size) block.reset();
  Shard::State* const shard = recipe->shard.get();
  if (!block) {
    stream.reset();
    if (shard != nullptr) shard->at_end = true;
    return;
  }
  if (shard != nullptr) shard->position.taken += (*block)->num_rows();
  batch = Batch(*std::move(block));
}

const Batch& Batches::Iterator::operator*() const { return state_->batch; }

Batches::Iterator& Batches::Iterator::operator++() {
  if (is_over()) return *this;
  try {
    state_->advance();
  } catch (...) {
    state_->stream.reset();
    throw;
  }
  return *this;
}

bool Batches::Iterator::is_over() const { return state_->stream == nullptr; }

Batches::Iterator Batches::begin() const { return Iterator(std::make_shared<Iterator::State>(recipe_)); }

}  // namespace cadre::data
