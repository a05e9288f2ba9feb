#include "data/parquet_writer.h"

#include <arrow/io/file.h>
#include <arrow/record_batch.h>
#include <arrow/util/compression.h>
#include <fmt/format.h>
#include <parquet/arrow/writer.h>
#include <parquet/exception.h>
#include <parquet/properties.h>

#include <algorithm>
#include <utility>

#include "base/directory.h"
#include "data/arrow_status.h"

namespace cadre::data {
namespace fs = std::filesystem;
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

}  // namespace

struct ParquetWriter::File {
  fs::path path;
  std::shared_ptr<arrow::io::FileOutputStream> stream;
  std::unique_ptr<parquet::arrow::FileWriter> writer;
  std::int64_t rows = 0;
};

ParquetWriter::ParquetWriter(fs::path folder, const WriteParquetOptions& options)
    : folder_(std::move(folder)), options_(options) {
  to_compression(options_.compression);
  base::make_directories(folder_);
  for (const std::string& name : base::list_directory(folder_)) {
    if (name.ends_with(".parquet"))
      throw InvalidArgument(
          fmt::format("write_parquet does not write into {}, which has Parquet files already ({}): "
                      "remove them, or choose another folder",
                      folder_.string(), name));
  }
}

ParquetWriter::~ParquetWriter() {
  file_.reset();
  std::error_code ignored;
  for (const fs::path& file : files_) fs::remove(file, ignored);
}

void ParquetWriter::open(const std::shared_ptr<arrow::Schema>& schema) {
  const fs::path path = folder_ / fmt::format("part_{:06}.parquet", files_.size());
  files_.push_back(path);
  const std::string doing = "cannot write " + path.string();
  auto stream = checked(arrow::io::FileOutputStream::Open(path.string()), doing);
  const auto properties = parquet::WriterProperties::Builder()
                              .compression(to_compression(options_.compression))
                              ->max_row_group_length(options_.rows_per_row_group)
                              ->build();
  const auto arrow_properties = parquet::ArrowWriterProperties::Builder().store_schema()->build();
  auto writer = checked(
      parquet::arrow::FileWriter::Open(*schema, arrow::default_memory_pool(), stream, properties, arrow_properties),
      doing);
  file_ = std::make_unique<File>(File{path, std::move(stream), std::move(writer)});
}

void ParquetWriter::close() {
  if (file_ == nullptr) return;
  const std::string doing = "cannot write " + file_->path.string();
  check(file_->writer->Close(), doing);
  check(file_->stream->Close(), doing);
  file_.reset();
}

void ParquetWriter::write(const Block& block) {
  try {
    for (std::int64_t row = 0; row < block->num_rows();) {
      if (file_ == nullptr) open(block->schema());
      const std::int64_t rows = std::min(block->num_rows() - row, options_.max_rows_per_file - file_->rows);
      check(file_->writer->WriteRecordBatch(*block->Slice(row, rows)), "cannot write " + file_->path.string());
      row += rows;
      file_->rows += rows;
      if (file_->rows == options_.max_rows_per_file) close();
    }
  } catch (const parquet::ParquetException& error) {
    throw StorageError(fmt::format("cannot write {}: {}", files_.back().string(), error.what()));
  }
}

std::vector<fs::path> ParquetWriter::finish(const std::shared_ptr<arrow::Schema>& schema) {
  if (files_.empty() && schema != nullptr) open(schema);
  close();
  return std::exchange(files_, {});
}

}  // namespace cadre::data
