#include "data/text_writer.h"

#include <arrow/array.h>
#include <arrow/compute/cast.h>
#include <arrow/csv/options.h>
#include <arrow/csv/writer.h>
#include <arrow/io/memory.h>
#include <arrow/ipc/writer.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>
#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "data/arrow_status.h"
#include "data/compute.h"
#include "data/keys.h"
#include "data/row_values.h"

namespace cadre::data {
namespace {

// ---- CSV

arrow::csv::WriteOptions to_arrow(const WriteCsvOptions& options) {
  auto write = arrow::csv::WriteOptions::Defaults();
  write.delimiter = options.delimiter;
  write.include_header = options.include_header;
  return write;
}

// Returns the columns in types that have a text form; dictionaries are written as their values.
std::shared_ptr<arrow::Schema> written_schema(const arrow::Schema& schema) {
  arrow::FieldVector fields;
  for (const auto& field : schema.fields()) fields.push_back(field->WithType(key_type(field->type())));
  return arrow::schema(std::move(fields));
}

class CsvWriter final : public FileWriter {
 public:
  CsvWriter(const std::shared_ptr<arrow::io::OutputStream>& stream, const arrow::Schema& schema,
            const WriteCsvOptions& options, std::string doing)
      : doing_(std::move(doing)),
        schema_(written_schema(schema)),
        writer_(checked(arrow::csv::MakeCSVWriter(stream, schema_, to_arrow(options)), doing_)) {}

  void write(const Block& block) override {
    arrow::ArrayVector columns;
    for (int i = 0; i < block->num_columns(); ++i) {
      const auto& type = schema_->field(i)->type();
      const auto& column = block->column(i);
      columns.push_back(column->type()->Equals(*type) ? column : checked(arrow::compute::Cast(*column, type), doing_));
    }
    check(writer_->WriteRecordBatch(*arrow::RecordBatch::Make(schema_, block->num_rows(), std::move(columns))), doing_);
  }
  void close() override { check(writer_->Close(), doing_); }

 private:
  std::string doing_;
  std::shared_ptr<arrow::Schema> schema_;
  std::shared_ptr<arrow::ipc::RecordBatchWriter> writer_;
};

void require_text_forms(const arrow::Schema& schema, const WriteCsvOptions& options) {
  initialise_compute();
  for (const auto& field : schema.fields()) {
    const auto alone = arrow::schema({field});
    const auto nowhere = checked(arrow::io::BufferOutputStream::Create(), "cannot write CSV");
    const auto writer = arrow::csv::MakeCSVWriter(nowhere, written_schema(*alone), to_arrow(options));
    if (!writer.ok())
      throw InvalidArgument(
          fmt::format("write_csv cannot write the column \"{}\", because {} has no form in CSV: select other columns, "
                      "or write Parquet or JSON ({})",
                      field->name(), field->type()->ToString(), writer.status().message()));
  }
}

// ---- JSON

// JSON has neither NaN nor infinities.
Value with_nulls(const Value& value) {
  if (value.is_double() && !std::isfinite(value.get<double>())) return {};
  if (value.is_list()) {
    List items;
    for (const Value& item : value.items()) items.push_back(with_nulls(item));
    return items;
  }
  if (value.is_dict()) {
    Dict entries;
    for (const auto& [key, entry] : value.dict()) entries.emplace_back(key, with_nulls(entry));
    return entries;
  }
  return value;
}

class JsonWriter final : public FileWriter {
 public:
  JsonWriter(std::shared_ptr<arrow::io::OutputStream> stream, std::string doing)
      : stream_(std::move(stream)), doing_(std::move(doing)) {}

  void write(const Block& block) override {
    std::string lines;
    for (std::int64_t row = 0; row < block->num_rows(); ++row)
      lines += to_json(with_nulls(row_at(*block, row).value())) + "\n";
    check(stream_->Write(lines), doing_);
  }
  void close() override {}

 private:
  std::shared_ptr<arrow::io::OutputStream> stream_;
  std::string doing_;
};

}  // namespace

FileFormat csv_format(const WriteCsvOptions& options) {
  return {.method = "write_csv",
          .name = "CSV",
          .ending = ".csv",
          .max_rows_per_file = options.max_rows_per_file,
          .require_types = [options](const arrow::Schema& schema) { require_text_forms(schema, options); },
          .open = [options](const std::shared_ptr<arrow::io::OutputStream>& stream,
                            const std::shared_ptr<arrow::Schema>& schema,
                            const std::string& doing) -> std::unique_ptr<FileWriter> {
            require_text_forms(*schema, options);
            return std::make_unique<CsvWriter>(stream, *schema, options, doing);
          }};
}

FileFormat json_format(const WriteJsonOptions& options) {
  return {.method = "write_json",
          .name = "JSON",
          .ending = ".json",
          .max_rows_per_file = options.max_rows_per_file,
          .needs_columns = false,
          .open = [](const std::shared_ptr<arrow::io::OutputStream>& stream, const std::shared_ptr<arrow::Schema>&,
                     const std::string& doing) -> std::unique_ptr<FileWriter> {
            return std::make_unique<JsonWriter>(stream, doing);
          }};
}

}  // namespace cadre::data
