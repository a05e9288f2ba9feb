#include "data/folder_writer.h"

#include <arrow/io/interfaces.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "data/arrow_status.h"

namespace cadre::data {
namespace fs = std::filesystem;
namespace {

constexpr std::int64_t kUnsentBytes = std::int64_t{16} << 20;

// Returns the format if it has the types of all columns.
FileFormat checked_format(FileFormat format, const std::shared_ptr<arrow::Schema>& schema) {
  if (schema != nullptr && format.require_types) format.require_types(*schema);
  return format;
}

}  // namespace

struct FolderWriter::File {
  std::string doing;  // for error messages
  std::shared_ptr<arrow::io::OutputStream> stream;
  std::unique_ptr<FileWriter> writer;
  std::int64_t rows = 0;
  std::int64_t flushed_bytes = 0;
};

FolderWriter::FolderWriter(const std::string& folder, FileFormat format, const std::shared_ptr<arrow::Schema>& schema)
    : format_(checked_format(std::move(format), schema)), folder_(folder) {
  for (const std::string& name : folder_.list()) {
    if (name.ends_with(format_.ending))
      throw InvalidArgument(
          fmt::format("{} does not write into {}, which has {} files already ({}): "
                      "remove them, or choose another folder",
                      format_.method, folder_.shown(), format_.name, name));
  }
}

FolderWriter::~FolderWriter() {
  if (file_ != nullptr)
    (void)file_->stream->Abort();  // closing it would leave an incomplete file in place of a complete one
  file_.reset();
  for (const std::string& name : files_) folder_.remove(name);
}

void FolderWriter::open(const std::shared_ptr<arrow::Schema>& schema) {
  const std::string name = fmt::format("part_{:06}{}", files_.size(), format_.ending);
  files_.push_back(name);
  const std::string doing = "cannot write " + folder_.shown(name);
  auto stream = folder_.create(name);
  auto writer = format_.open(stream, schema, doing);
  file_ = std::make_unique<File>(File{doing, std::move(stream), std::move(writer)});
}

void FolderWriter::close() {
  if (file_ == nullptr) return;
  file_->writer->close();
  check(file_->stream->Close(), file_->doing);
  file_.reset();
}

void FolderWriter::write(const Block& block) {
  if (format_.needs_columns && block->num_columns() == 0)
    throw InvalidArgument(
        fmt::format("{} cannot write rows without columns into {}, because a {} file "
                    "has no place for them: write at least one column",
                    format_.method, folder_.shown(), format_.name));
  for (std::int64_t row = 0; row < block->num_rows();) {
    if (file_ == nullptr) open(block->schema());
    const std::int64_t rows = std::min(block->num_rows() - row, format_.max_rows_per_file - file_->rows);
    file_->writer->write(block->Slice(row, rows));
    flush();
    row += rows;
    file_->rows += rows;
    if (file_->rows == format_.max_rows_per_file) close();
  }
}

// Flushes regularly: a storage's stream accepts any amount of data and sends it in its own threads.
void FolderWriter::flush() {
  const std::int64_t written = checked(file_->stream->Tell(), file_->doing);
  if (written - file_->flushed_bytes < kUnsentBytes) return;
  check(file_->stream->Flush(), file_->doing);
  file_->flushed_bytes = written;
}

std::vector<fs::path> FolderWriter::finish(const std::shared_ptr<arrow::Schema>& schema) {
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
