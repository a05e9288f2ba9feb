// cadre export --parquet: a table of results as a Parquet file, which a library writes that is loaded for it.
#include <fmt/format.h>

#include <memory>
#include <string_view>
#include <unordered_map>

#include "base/json.h"
#include "base/utf8.h"
#include "cadre/error.h"
#include "cli/exports.h"
#include "loggers/flat_row.h"
#include "storage/arrow_module.h"
#include "table_file/module.h"
#include "tune/results/result_table.h"

namespace cadre::cli {
namespace {

using table_file::ColumnType;

constexpr std::size_t kRowsInAPiece = 10'000;

table_file::OpenParquet load_writer() {
  std::string reason;
  if (void* const function = storage::load_arrow_module(table_file::kModuleFile, table_file::kModuleFunction, reason))
    return reinterpret_cast<table_file::OpenParquet>(function);
  constexpr const char* kWithout =
      "Without it pandas writes one from `cadre export --all`: read_csv(...).to_parquet(...)";
  if (storage::is_arrow_missing(reason))
    throw NotFound(fmt::format("a Parquet file needs Arrow, which was not found: {}. {} ({})",
                               storage::how_to_get_arrow(), kWithout, reason));
  throw NotFound(fmt::format(
      "a Parquet file needs Cadre's library for it, {}, and Arrow beside it, which this program does not find: install "
      "Cadre with the component storage (the package libcadre-storage-dev), or add the library's folder to "
      "LD_LIBRARY_PATH. {} ({})",
      table_file::kModuleFile, kWithout, reason));
}

// The columns in the order of their first appearance, and their types.
class ParquetColumns {
 public:
  void add(const Dict& flat_row) {
    for (const auto& [name, value] : flat_row) {
      const auto [known, is_new] = numbers_.try_emplace(base::to_utf8(name), columns_.size());
      if (is_new) columns_.push_back({known->first, ColumnType::text});
      if (!value.is_null()) widen(known->second, value);
    }
  }
  const std::vector<table_file::Column>& columns() const { return columns_; }
  std::size_t number_of(const std::string& name) const { return numbers_.at(base::to_utf8(name)); }

 private:
  static ColumnType type_of(const Value& value) {
    if (value.is_bool()) return ColumnType::boolean;
    if (value.is_integer()) return ColumnType::integer;
    return value.is_double() ? ColumnType::number : ColumnType::text;
  }
  void widen(std::size_t number, const Value& value) {
    const ColumnType type = type_of(value);
    if (seen_.size() <= number) seen_.resize(columns_.size());
    ColumnType& whole = columns_[number].type;
    if (!seen_[number]) {
      seen_[number] = true;
      whole = type;
    } else if (whole != type) {
      const auto is_number = [](ColumnType one) { return one == ColumnType::integer || one == ColumnType::number; };
      whole = is_number(whole) && is_number(type) ? ColumnType::number : ColumnType::text;
    }
  }

  std::vector<table_file::Column> columns_;
  std::vector<bool> seen_;  // by column; true: it has a value
  std::unordered_map<std::string, std::size_t> numbers_;
};

Value cell_of(const Value& value, ColumnType type) {
  if (value.is_null() || type != ColumnType::text) return value;
  return value.is_string() ? Value(base::to_utf8(value.get<std::string>())) : Value(to_json(value));
}

}  // namespace

void export_parquet(const tune::ResultGrid& grid, const tune::TableOptions& options,
                    const std::filesystem::path& file) {
  const table_file::OpenParquet open = load_writer();
  // Two passes, because types follow from all rows, which may not fit into memory.
  ParquetColumns columns;
  columns.add({{"trial_id", ""}, {"status", ""}});
  tune::visit_rows(grid, options, [&](const Dict& row) { columns.add(loggers::flatten(row)); });
  const std::unique_ptr<table_file::Writer> writer(open(file, columns.columns()));
  table_file::Rows piece(columns.columns().size());
  const auto write_piece = [&] {
    if (piece.front().empty()) return;
    writer->add(piece);
    for (List& values : piece) values.clear();
  };
  tune::visit_rows(grid, options, [&](const Dict& row) {
    for (List& values : piece) values.emplace_back();
    for (const auto& [name, value] : loggers::flatten(row)) {
      const std::size_t number = columns.number_of(name);
      piece[number].back() = cell_of(value, columns.columns()[number].type);
    }
    if (piece.front().size() == kRowsInAPiece) write_piece();
  });
  write_piece();
  writer->close();
}

}  // namespace cadre::cli
