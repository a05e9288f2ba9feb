#include "data/parquet_writer.h"

#include <arrow/io/interfaces.h>
#include <arrow/record_batch.h>
#include <arrow/util/compression.h>
#include <fmt/format.h>
#include <parquet/arrow/writer.h>
#include <parquet/exception.h>
#include <parquet/properties.h>

#include <algorithm>
#include <utility>

#include "data/arrow_status.h"

namespace cadre::data {
namespace fs = std::filesystem;
namespace {

constexpr std::int64_t kUnsentBytes = std::int64_t{16} << 20;

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

}  // namespace

struct ParquetWriter::File {
  std::string doing;  // for error messages
  std::shared_ptr<arrow::io::OutputStream> stream;
  std::unique_ptr<parquet::arrow::FileWriter> writer;
  std::int64_t rows = 0;
  std::int64_t flushed_bytes = 0;
};

ParquetWriter::ParquetWriter(const std::string& folder, const WriteParquetOptions& options)
    : folder_(folder), options_(options) {
  to_compression(options_.compression);
  for (const std::string& name : folder_.list()) {
    if (name.ends_with(".parquet"))
      throw InvalidArgument(
          fmt::format("write_parquet does not write into {}, which has Parquet files already ({}): "
                      "remove them, or choose another folder",
                      folder_.shown(), name));
  }
}

ParquetWriter::~ParquetWriter() {
  if (file_ != nullptr)
    (void)file_->stream->Abort();  // closing it would leave an incomplete file in place of a complete one
  file_.reset();
  for (const std::string& name : files_) folder_.remove(name);
}

void ParquetWriter::open(const std::shared_ptr<arrow::Schema>& schema) {
  const std::string name = fmt::format("part_{:06}.parquet", files_.size());
  files_.push_back(name);
  const std::string doing = "cannot write " + folder_.shown(name);
  auto stream = folder_.create(name);
  const auto properties = parquet::WriterProperties::Builder()
                              .compression(to_compression(options_.compression))
                              ->max_row_group_length(options_.rows_per_row_group)
                              ->build();
  const auto arrow_properties = parquet::ArrowWriterProperties::Builder().store_schema()->build();
  auto writer = checked(
      parquet::arrow::FileWriter::Open(*schema, arrow::default_memory_pool(), stream, properties, arrow_properties),
      doing);
  file_ = std::make_unique<File>(File{doing, std::move(stream), std::move(writer)});
}

void ParquetWriter::close() {
  if (file_ == nullptr) return;
  check(file_->writer->Close(), file_->doing);
  check(file_->stream->Close(), file_->doing);
  file_.reset();
}

void ParquetWriter::write(const Block& block) {
  if (block->num_columns() == 0)
    throw InvalidArgument(
        fmt::format("write_parquet cannot write rows without columns into {}, because a Parquet file "
                    "has no place for them: write at least one column",
                    folder_.shown()));
  try {
    for (std::int64_t row = 0; row < block->num_rows();) {
      if (file_ == nullptr) open(block->schema());
      const std::int64_t rows = std::min(block->num_rows() - row, options_.max_rows_per_file - file_->rows);
      check(file_->writer->WriteRecordBatch(*block->Slice(row, rows)), file_->doing);
      flush();
      row += rows;
      file_->rows += rows;
      if (file_->rows == options_.max_rows_per_file) close();
    }
  } catch (const parquet::ParquetException& error) {
    throw StorageError(fmt::format("cannot write {}: {}", folder_.shown(files_.back()), error.what()));
  }
}

// Flushes regularly: a storage's stream accepts any amount of data and sends it in its own threads.
void ParquetWriter::flush() {
  const std::int64_t written = checked(file_->stream->Tell(), file_->doing);
  if (written - file_->flushed_bytes < kUnsentBytes) return;
  check(file_->stream->Flush(), file_->doing);
  file_->flushed_bytes = written;
}

std::vector<fs::path> ParquetWriter::finish(const std::shared_ptr<arrow::Schema>& schema) {
  if (files_.empty() && schema != nullptr) open(schema);
  close();
  std::vector<fs::path> paths;
  for (const std::string& name : files_) {
    folder_.publish(name);
    paths.emplace_back(folder_.path_of(name));
  }
  files_.clear();
  return paths;
}

}  // namespace cadre::data
