// The sources of rows, divided into pieces: row groups of Parquet files, text files, batches in memory.
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

class BatchMemory;

// Receives a block; may wait, and may throw to stop the producer.
using Emit = std::function<void(Block block)>;

// Settings for reading a piece.
struct ReadContext {
  arrow::MemoryPool* pool = nullptr;
  std::int64_t block_bytes = 0;  // approximate target size of blocks
  // Memory for rows of a fixed size, which the consumer takes in batches; null: blocks have memory of their own.
  std::shared_ptr<BatchMemory> batch_memory = {};
  std::int64_t first_row = 0;  // of the piece, among the rows of the batches
  // Called for each file or row that the reader leaves out, where the plan allows that; null: it is not reported.
  std::function<void(const std::string& error)> skipped = {};
};

struct Piece;

// Reads pieces of one kind. Used by many threads.
class PieceReader {
 public:
  virtual ~PieceReader() = default;
  // Emits the wanted rows of the piece in order, without rows that a condition excludes.
  virtual void read(const Piece& piece, const ReadContext& context, const Emit& emit) const = 0;
};

struct Piece {
  std::shared_ptr<const PieceReader> reader;
  std::int64_t number = 0;                // used by the reader
  std::optional<std::int64_t> rows = {};  // before a condition; empty: unknown
  std::int64_t bytes = 0;                 // of all its rows, approximate
  std::int64_t overhead_bytes = 0;        // held during the read besides the blocks: pages and buffers; approximate
  std::int64_t begin = 0;                 // first wanted row
  std::int64_t first_number = 0;          // of its row 0 among all rows; set for RowNumbers
  std::optional<std::int64_t> end = {};   // one past the last wanted row; empty: to the end
};

struct Source {
  std::string name = {};                       // for messages
  std::shared_ptr<arrow::Schema> schema = {};  // of the result; null: there are no files with columns
  std::vector<Piece> pieces = {};
};

// Read metadata only. Throw the errors described in Dataset.
Source open_parquet(const ReadFiles& read);
Source open_text(const ReadFiles& read);
Source open_images(const ReadFiles& read);
Source open_binary_files(const ReadFiles& read);
Source open_lines(const ReadFiles& read);
Source open_npy(const ReadFiles& read);  // .npy files, or .npz ones
Source open_npz(const ReadFiles& read);
Source open_tf_records(const ReadFiles& read);
Source open_webdataset(const ReadFiles& read);
// Opens a read of any format.
Source open_files(const ReadFiles& read);
Source open_memory(const FromMemory& memory);
Source open_range(const Range& range);

// Sets the number of rows of pieces that do not know it, by reading them.
void count_rows(std::vector<Piece>& pieces);
// Returns the rows from `begin` to `end`. The pieces must know their numbers of rows. Pieces without rows are omitted.
std::vector<Piece> cut(const std::vector<Piece>& pieces, std::int64_t begin, std::int64_t end);
std::int64_t rows_of(const Piece& piece);  // wanted rows, which must be known
std::int64_t rows_of(const std::vector<Piece>& pieces);

// Throws InvalidArgument, with a list of the columns, if one of the names is missing.
void require_columns(const arrow::Schema& schema, const Names& names, const std::string& where);
// Throws StorageError, with the file, if two of its columns have the same name.
void require_different_names(const arrow::Schema& schema, const std::string& file);
// Throws StorageError, with both files, if a file has different columns than the first one.
void require_same_columns(const arrow::Schema& first, const std::string& first_file, const arrow::Schema& schema,
                          const std::string& file);

// Returns the part of a block between the rows `begin` and `end` of its piece; empty: none. `at` is the block's first
// row in the piece, and is advanced to the row after the block.
std::optional<Block> wanted_rows(const Piece& piece, const Block& block, std::int64_t& at);

}  // namespace cadre::data
