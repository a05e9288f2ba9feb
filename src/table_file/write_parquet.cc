// The entry point that the program `cadre` loads: opens a Parquet file to write a table.
#include <arrow/array/builder_base.h>
#include <arrow/array/builder_binary.h>
#include <arrow/array/builder_primitive.h>
#include <arrow/io/file.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>
#include <fmt/format.h>
#include <parquet/arrow/writer.h>
#include <parquet/properties.h>

#include <memory>
#include <utility>

#include "base/file.h"
#include "cadre/error.h"
#include "table_file/module.h"

namespace cadre::table_file {
namespace fs = std::filesystem;
namespace {

void check(const arrow::Status& status, const fs::path& file) {
  if (!status.ok()) throw StorageError(fmt::format("cannot write {}: {}", file.string(), status.message()));
}

template <class T>
T checked(arrow::Result<T> result, const fs::path& file) {
  check(result.status(), file);
  return *std::move(result);
}

std::shared_ptr<arrow::DataType> arrow_type(ColumnType type) {
  switch (type) {
    case ColumnType::boolean:
      return arrow::boolean();
    case ColumnType::integer:
      return arrow::int64();
    case ColumnType::number:
      return arrow::float64();
    case ColumnType::text:
      break;
  }
  return arrow::utf8();
}

template <class Builder, class T>
std::shared_ptr<arrow::Array> array_of(const List& values, const fs::path& file) {
  Builder builder;
  for (const Value& value : values)
    check(value.is_null() ? builder.AppendNull() : builder.Append(value.get<T>()), file);
  return checked(builder.Finish(), file);
}

std::shared_ptr<arrow::Array> array_of(ColumnType type, const List& values, const fs::path& file) {
  switch (type) {
    case ColumnType::boolean:
      return array_of<arrow::BooleanBuilder, bool>(values, file);
    case ColumnType::integer:
      return array_of<arrow::Int64Builder, std::int64_t>(values, file);
    case ColumnType::number:
      return array_of<arrow::DoubleBuilder, double>(values, file);
    case ColumnType::text:
      break;
  }
  return array_of<arrow::StringBuilder, std::string>(values, file);
}

class ParquetWriter final : public Writer {
 public:
  ParquetWriter(fs::path file, const std::vector<Column>& columns) : file_(std::move(file)), columns_(columns) {
    temporary_ = file_;
    temporary_ += ".tmp";
    arrow::FieldVector fields;
    for (const Column& column : columns) fields.push_back(arrow::field(column.name, arrow_type(column.type)));
    schema_ = arrow::schema(fields);
    stream_ = checked(arrow::io::FileOutputStream::Open(temporary_.string()), file_);
    const auto properties = parquet::WriterProperties::Builder().compression(arrow::Compression::SNAPPY)->build();
    const auto arrow_properties = parquet::ArrowWriterProperties::Builder().store_schema()->build();
    writer_ = checked(
        parquet::arrow::FileWriter::Open(*schema_, arrow::default_memory_pool(), stream_, properties, arrow_properties),
        file_);
  }
  ParquetWriter(const ParquetWriter&) = delete;
  ParquetWriter& operator=(const ParquetWriter&) = delete;
  ~ParquetWriter() override {
    if (is_closed_) return;
    std::error_code ignored;
    fs::remove(temporary_, ignored);
  }

  void add(const Rows& rows) override {
    arrow::ArrayVector arrays;
    for (std::size_t i = 0; i < columns_.size(); ++i) arrays.push_back(array_of(columns_[i].type, rows.at(i), file_));
    const auto count = static_cast<std::int64_t>(rows.front().size());
    check(writer_->WriteRecordBatch(*arrow::RecordBatch::Make(schema_, count, std::move(arrays))), file_);
  }

  void close() override {
    check(writer_->Close(), file_);
    check(stream_->Close(), file_);
    base::rename(temporary_, file_);
    is_closed_ = true;
  }

 private:
  fs::path file_;
  fs::path temporary_;
  std::vector<Column> columns_;
  std::shared_ptr<arrow::Schema> schema_;
  std::shared_ptr<arrow::io::FileOutputStream> stream_;
  std::unique_ptr<parquet::arrow::FileWriter> writer_;
  bool is_closed_ = false;
};

}  // namespace
}  // namespace cadre::table_file

// Looked up by name, see table_file/module.h.
extern "C" __attribute__((visibility("default"))) cadre::table_file::Writer* cadre_open_parquet(
    const std::filesystem::path& file, const std::vector<cadre::table_file::Column>& columns) {
  return std::make_unique<cadre::table_file::ParquetWriter>(file, columns).release();
}
