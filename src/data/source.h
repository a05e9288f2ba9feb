// Where rows come from, in pieces: the row groups of Parquet files, text files, batches in memory.
#pragma once

#include <arrow/type_fwd.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/plan.h"

namespace cadre::data {

// Takes a block further; may wait, and may throw to end what gives it.
using Emit = std::function<void(Block block)>;

// How it is read.
struct ReadContext {
  arrow::MemoryPool* pool = nullptr;
  std::int64_t block_bytes = 0;  // about as large as blocks should be
};

struct Piece;

// Reads pieces of one kind. Many threads use it.
class PieceReader {
 public:
  virtual ~PieceReader() = default;
  // The rows that the piece says, in order and less those that a condition leaves out.
  virtual void read(const Piece& piece, const ReadContext& context, const Emit& emit) const = 0;
};

struct Piece {
  std::shared_ptr<const PieceReader> reader;
  std::int64_t number = 0;                // for the reader
  std::optional<std::int64_t> rows = {};  // before a condition; empty: not known
  std::int64_t bytes = 0;                 // of all its rows, about
  std::int64_t overhead_bytes = 0;        // held while it is read, beside the blocks: pages and buffers, about
  std::int64_t begin = 0;                 // the rows that are wanted
  std::optional<std::int64_t> end = {};   // empty: to the last
};

struct Source {
  std::string name = {};                       // for people
  std::shared_ptr<arrow::Schema> schema = {};  // of what comes; null: there are no files with columns
  std::vector<Piece> pieces = {};
};

// Reads metadata, and nothing else. Throws what Dataset says.
Source open_parquet(const ReadFiles& read);
Source open_text(const ReadFiles& read);
Source open_memory(const FromMemory& memory);
Source open_range(const Range& range);

// Gives the number of rows to those pieces that do not know it, by reading them.
void count_rows(std::vector<Piece>& pieces);
// The rows from `begin` to `end` of pieces that know their numbers. Pieces without rows are left out.
std::vector<Piece> cut(const std::vector<Piece>& pieces, std::int64_t begin, std::int64_t end);
std::int64_t rows_of(const Piece& piece);  // that are wanted; it knows them
std::int64_t rows_of(const std::vector<Piece>& pieces);

// Throws InvalidArgument that lists the columns where one of the names is none of them.
void require_columns(const arrow::Schema& schema, const Names& names, const std::string& where);
// Throws StorageError, with the file, where two of its columns have the same name.
void require_different_names(const arrow::Schema& schema, const std::string& file);
// Throws StorageError, with both files, where a file has other columns than the first one.
void require_same_columns(const arrow::Schema& first, const std::string& first_file, const arrow::Schema& schema,
                          const std::string& file);

// What of a block lies between the rows `begin` and `end` of its piece; `at` is the block's first row there, and moved
// behind it. Empty where nothing does.
std::optional<Block> wanted_rows(const Piece& piece, const Block& block, std::int64_t& at);

}  // namespace cadre::data
