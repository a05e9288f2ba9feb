#include "data/spilled_rows.h"

#include <arrow/io/file.h>
#include <arrow/ipc/reader.h>
#include <arrow/ipc/writer.h>
#include <arrow/record_batch.h>

#include <filesystem>
#include <utility>

#include "data/arrow_status.h"

namespace cadre::data {

class SpilledRows::Reader final : public BlockStream {
 public:
  Reader(std::string path, const char* task) : path_(std::move(path)), task_(task) {}

  std::optional<Block> next() override {
    if (reader_ == nullptr) {
      const auto source = checked(arrow::io::MemoryMappedFile::Open(path_, arrow::io::FileMode::READ), task_);
      reader_ = checked(arrow::ipc::RecordBatchStreamReader::Open(source), task_);
      std::filesystem::remove(path_);  // the mapping stays valid
    }
    Block block;
    check(reader_->ReadNext(&block), task_);
    if (block == nullptr) return std::nullopt;
    return block;
  }
  void cancel() override {}

 private:
  std::string path_;
  const char* task_;
  std::shared_ptr<arrow::RecordBatchReader> reader_;
};

SpilledRows::SpilledRows(std::string path, const char* task) : path_(std::move(path)), task_(task) {}

void SpilledRows::add(const Block& block) {
  if (writer_ == nullptr) {
    file_ = checked(arrow::io::FileOutputStream::Open(path_), task_);
    writer_ = checked(arrow::ipc::MakeStreamWriter(file_, block->schema()), task_);
  }
  check(writer_->WriteRecordBatch(*block), task_);
}

std::unique_ptr<BlockStream> SpilledRows::take() {
  check(writer_->Close(), task_);
  check(file_->Close(), task_);
  return std::make_unique<Reader>(std::move(path_), task_);
}

}  // namespace cadre::data
