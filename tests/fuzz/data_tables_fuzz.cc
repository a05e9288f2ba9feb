// Small Parquet files with columns of any types, which may differ from file to file: conditions and columns that are
// pushed into the read give the same rows as after it, and every value can be read.
#include <arrow/io/file.h>
#include <arrow/json/from_string.h>
#include <arrow/table.h>
#include <arrow/type.h>
#include <arrow/util/key_value_metadata.h>
#include <fuzzer/FuzzedDataProvider.h>
#include <parquet/arrow/writer.h>

#include <array>
#include <functional>
#include <optional>
#include <string>

#include "cadre/data.h"
#include "cadre/error.h"
#include "fuzz/require.h"
#include "support/temporary_directory.h"

using namespace cadre;
using fuzz::require;

namespace {

using Type = std::shared_ptr<arrow::DataType>;

constexpr std::array kNames{"a", "b", "c"};

Type type_from(FuzzedDataProvider& input, int depth = 0) {
  switch (input.ConsumeIntegralInRange(0, depth < 2 ? 15 : 10)) {
    case 0:
      return arrow::null();
    case 1:
      return arrow::int8();
    case 2:
      return arrow::int32();
    case 3:
      return arrow::uint16();
    case 4:
      return arrow::int64();
    case 5:
      return arrow::float32();
    case 6:
      return arrow::float64();
    case 7:
      return arrow::boolean();
    case 8:
      return arrow::utf8();
    case 9:
      return arrow::large_utf8();
    case 10:
      return arrow::date32();
    case 11:
      return arrow::dictionary(arrow::int32(), arrow::utf8());
    case 12:
      return arrow::list(type_from(input, depth + 2));
    case 13:
      return arrow::large_list(type_from(input, depth + 1));
    case 14:
      return arrow::fixed_size_list(type_from(input, depth + 1), input.ConsumeIntegralInRange(1, 3));
    default:
      return arrow::struct_({arrow::field("x", type_from(input, depth + 1)), arrow::field("y", arrow::int16())});
  }
}

// Returns a JSON value of this type.
std::string value_from(FuzzedDataProvider& input, const arrow::DataType& type) {
  if (type.id() == arrow::Type::NA || input.ConsumeIntegralInRange(0, 5) == 0) return "null";
  const auto items = [&](int count) {
    std::string text = "[";
    for (int i = 0; i < count; ++i) text += (i > 0 ? "," : "") + value_from(input, *type.field(0)->type());
    return text + "]";
  };
  switch (type.id()) {
    case arrow::Type::BOOL:
      return input.ConsumeBool() ? "true" : "false";
    case arrow::Type::FLOAT:
    case arrow::Type::DOUBLE:
      return input.ConsumeIntegralInRange(0, 7) == 0 ? "NaN"
                                                     : std::to_string(input.ConsumeIntegral<std::int8_t>()) + ".5";
    case arrow::Type::STRING:
    case arrow::Type::LARGE_STRING:
    case arrow::Type::DICTIONARY:
      return input.ConsumeBool() ? R"("x")" : R"("yy")";
    case arrow::Type::LIST:
    case arrow::Type::LARGE_LIST:
      return items(input.ConsumeIntegralInRange(0, 3));
    case arrow::Type::FIXED_SIZE_LIST:
      return items(static_cast<const arrow::FixedSizeListType&>(type).list_size());
    case arrow::Type::STRUCT:
      return "{\"x\":" + value_from(input, *type.field(0)->type()) +
             ",\"y\":" + value_from(input, *type.field(1)->type()) + "}";
    case arrow::Type::UINT16:
      return std::to_string(input.ConsumeIntegral<std::uint8_t>());
    default:
      return std::to_string(input.ConsumeIntegral<std::int8_t>());
  }
}

// Returns metadata that Ray Data writes for a tensor, similar metadata, or null.
std::shared_ptr<arrow::KeyValueMetadata> note_from(FuzzedDataProvider& input) {
  constexpr std::array kTypes{"ray.data.arrow_tensor", "ray.data.arrow_tensor_v2",
                              "ray.data.arrow_variable_shaped_tensor"};
  if (input.ConsumeBool()) return nullptr;
  return arrow::KeyValueMetadata::Make(
      {"ARROW:extension:name", "ARROW:extension:metadata"},
      {input.PickValueInArray(kTypes), input.ConsumeBool() ? "[2]" : input.ConsumeRandomLengthString(10)});
}

// Returns the number of rows written; empty if Arrow cannot write them.
std::optional<std::int64_t> write_file(FuzzedDataProvider& input, const std::string& path) {
  const int rows = input.ConsumeIntegralInRange(0, 5);
  arrow::FieldVector fields;
  arrow::ArrayVector arrays;
  for (const char* name : kNames) {
    if (input.ConsumeIntegralInRange(0, 3) == 0) continue;
    const Type type = type_from(input);
    std::string values = "[";
    for (int row = 0; row < rows; ++row) values += (row > 0 ? "," : "") + value_from(input, *type);
    auto array = arrow::json::ArrayFromJSONString(type, values + "]");
    if (!array.ok()) return std::nullopt;
    fields.push_back(arrow::field(name, type, true, note_from(input)));
    arrays.push_back(*std::move(array));
  }
  if (fields.empty()) return std::nullopt;
  const auto stream = arrow::io::FileOutputStream::Open(path).ValueOrDie();
  const auto keep_types = parquet::ArrowWriterProperties::Builder().store_schema()->build();
  const auto written = parquet::arrow::WriteTable(
      *arrow::Table::Make(arrow::schema(fields), arrays), arrow::default_memory_pool(), stream,
      input.ConsumeIntegralInRange(1, 4), parquet::default_writer_properties(), keep_types);
  return written.ok() && stream->Close().ok() ? std::optional<std::int64_t>(rows) : std::nullopt;
}

data::Expression condition_from(FuzzedDataProvider& input) {
  const data::Expression column = data::column(input.PickValueInArray(kNames));
  const auto number = input.ConsumeIntegral<std::int8_t>();
  switch (input.ConsumeIntegralInRange(0, 6)) {
    case 0:
      return is_null(column);
    case 1:
      return column < number;
    case 2:
      return column == number + 0.5;
    case 3:
      return !(column >= number);
    case 4:
      return column == "x";
    case 5:
      return column != number || is_null(column);
    default:
      return is_nan(column);
  }
}

// Returns the rows as text; empty if the plan does not fit them.
std::optional<std::string> text_of(const data::Dataset& rows) {
  try {
    std::string text;
    for (const data::Row& row : rows.take_all()) text += to_json(row.value()) + "\n";
    return text;
  } catch (const InvalidArgument&) {
    return std::nullopt;
  }
}

void ask_everything(const data::Batch& batch) {
  for (const std::string& column : batch.columns()) {
    try {
      static_cast<void>(batch.number_type(column));
      std::int64_t numbers = batch.num_rows();
      for (const std::int64_t width : batch.row_shape(column)) numbers *= width;
      require(std::ssize(batch.to_vector<double>(column)) == numbers, "the shape says how many numbers there are");
    } catch (const InvalidArgument&) {
    }
  }
}

void check(const data::Dataset& rows, std::int64_t count, FuzzedDataProvider& input) {
  const data::Dataset in_memory = rows.materialize();
  require(rows.count() == count && in_memory.count() == count, "every row is read");
  const std::string column = input.PickValueInArray(kNames);
  const data::Expression condition = condition_from(input);
  for (const data::Batch& batch : rows.iter_batches({.batch_size = 3, .prefetch_batches = 0})) ask_everything(batch);
  require(text_of(rows.filter(condition)) == text_of(in_memory.filter(condition)), "a condition is pushed down");
  require(text_of(rows.select_columns({column})) == text_of(in_memory.select_columns({column})), "columns are too");
  require(text_of(rows.skip(1).limit(2)) == text_of(in_memory.skip(1).limit(2)), "rows are in order");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  static const test_support::TemporaryDirectory directory;
  FuzzedDataProvider input(bytes, size);
  std::int64_t count = 0;
  std::vector<std::string> files;
  for (int file = 0, wanted = input.ConsumeIntegralInRange(1, 3); file < wanted; ++file) {
    files.push_back(directory / (std::to_string(file) + ".parquet"));
    const auto rows = write_file(input, files.back());
    if (!rows) return 0;
    count += *rows;
  }
  try {
    const data::Dataset rows =
        data::read_parquet(files).with_options({.num_threads = 1, .function_place = data::FunctionPlace::threads});
    check(rows, count, input);
  } catch (const StorageError&) {     // types that cannot be unified
  } catch (const InvalidArgument&) {  // types that Arrow's Parquet reader does not support
  }
  return 0;
}
