// Rows of files that are decoded one by one, and collected to blocks.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cadre/error.h"
#include "data/file_columns.h"
#include "data/source.h"

namespace cadre::data {

// Collects the wanted rows of a piece that is one file. `Columns` has bytes(), the size of the rows that it has, and
// finish(), which returns an array for each column of the format, and leaves it without rows.
template <class Columns>
class FileRowCollector {
 public:
  using MakeColumns = std::function<std::unique_ptr<Columns>()>;

  FileRowCollector(const FileColumns& files, const Piece& piece, const ReadContext& context, const Emit& emit,
                   bool skips_damaged, MakeColumns make_columns)
      : files_(files),
        piece_(piece),
        context_(context),
        emit_(emit),
        skips_damaged_(skips_damaged),
        make_columns_(std::move(make_columns)),
        columns_(make_columns_()) {}

  // Returns true if no further row is wanted.
  bool is_over() const { return piece_.end && row_ >= *piece_.end; }
  // Adds a row by `add(columns)`, which throws StorageError, and adds nothing, if the row is damaged.
  template <class Add>
  void add(Add add) {
    const bool is_in_range = row_ >= piece_.begin;
    const std::int64_t record = record_++;
    try {
      if (is_in_range) {
        add(*columns_);
      } else if (skips_damaged_) {
        add(*make_columns_());
      }
    } catch (const StorageError& error) {
      return skip(error, record);
    } catch (const InvalidArgument& error) {
      throw InvalidArgument(message(error, record));
    }
    ++row_;
    if (!is_in_range) return;
    ++rows_;
    if (columns_->bytes() >= context_.block_bytes || rows_ >= kMostRows) finish_block();
  }
  // Leaves out what cannot be read at this place of the file, or throws the error with the place.
  void skip(const StorageError& error) { skip(error, record_); }
  void finish_block() {
    if (rows_ == 0) return;
    emit_(
        files_.complete(columns_->finish(), std::vector<FileRows>{{number(), std::exchange(rows_, 0)}}, context_.pool));
  }

 private:
  static constexpr std::int64_t kMostRows = std::int64_t{64} << 10;

  std::size_t number() const { return static_cast<std::size_t>(piece_.number); }
  std::string message(const Error& error, std::int64_t record) const {
    return fmt::format("cannot read {}, row {}: {}", files_.files()[number()].shown, record, error.what());
  }
  void skip(const StorageError& error, std::int64_t record) const {
    if (!skips_damaged_) throw StorageError(message(error, record) + kHowToSkip);
    if (context_.skipped) context_.skipped(message(error, record));
  }

  const FileColumns& files_;
  const Piece& piece_;
  const ReadContext& context_;
  const Emit& emit_;
  bool skips_damaged_;
  MakeColumns make_columns_;
  std::unique_ptr<Columns> columns_;
  std::int64_t record_ = 0;  // in the file
  std::int64_t row_ = 0;     // in the piece: without damaged ones
  std::int64_t rows_ = 0;    // in the block
};

}  // namespace cadre::data
