#include "data/parquet_writer.h"

#include <arrow/io/interfaces.h>
#include <arrow/record_batch.h>
#include <arrow/util/compression.h>
#include <fmt/format.h>
#include <parquet/arrow/writer.h>
#include <parquet/exception.h>
#include <parquet/properties.h>

#include <utility>

#include "data/arrow_status.h"

namespace cadre::data {
namespace {

arrow::Compression::type to_compression(const std::string& name) {
  constexpr std::pair<const char*, arrow::Compression::type> kCompressions[] = {
      {"none", arrow::Compression::UNCOMPRESSED},
      {"snappy", arrow::Compression::SNAPPY},
      {"gzip", arrow::Compression::GZIP},
      {"zstd", arrow::Compression::ZSTD},
      {"lz4", arrow::Compression::LZ4}};
  for (const auto& [known, compression] : kCompressions) {
    if (name == known) return compression;
  }
  throw InvalidArgument(
      fmt::format("write_parquet: there is no compression \"{}\"; there are none, snappy, gzip, zstd and lz4", name));
}

class ParquetWriter final : public FileWriter {
 public:
  ParquetWriter(std::unique_ptr<parquet::arrow::FileWriter> writer, std::string doing)
      : writer_(std::move(writer)), doing_(std::move(doing)) {}

  void write(const Block& block) override {
    try {
      check(writer_->WriteRecordBatch(*block), doing_);
    } catch (const parquet::ParquetException& error) {
      throw StorageError(fmt::format("{}: {}", doing_, error.what()));
    }
  }
  void close() override { check(writer_->Close(), doing_); }

 private:
  std::unique_ptr<parquet::arrow::FileWriter> writer_;
  std::string doing_;
};

}  // namespace

FileFormat parquet_format(const WriteParquetOptions& options) {
  const auto properties = parquet::WriterProperties::Builder()
                              .compression(to_compression(options.compression))
                              ->max_row_group_length(options.rows_per_row_group)
                              ->build();
  const auto arrow_properties = parquet::ArrowWriterProperties::Builder().store_schema()->build();
  return {
      .method = "write_parquet",
      .name = "Parquet",
      .ending = ".parquet",
      .max_rows_per_file = options.max_rows_per_file,
      .open = [=](const std::shared_ptr<arrow::io::OutputStream>& stream, const std::shared_ptr<arrow::Schema>& schema,
                  const std::string& doing) -> std::unique_ptr<FileWriter> {
        return std::make_unique<ParquetWriter>(
            checked(parquet::arrow::FileWriter::Open(*schema, arrow::default_memory_pool(), stream, properties,
                                                     arrow_properties),
                    doing),
            doing);
      }};
}

}  // namespace cadre::data
