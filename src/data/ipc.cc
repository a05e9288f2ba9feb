#include "data/ipc.h"

#include <arrow/io/memory.h>
#include <arrow/ipc/reader.h>
#include <arrow/ipc/writer.h>
#include <arrow/record_batch.h>

#include <utility>

#include "data/arrow_status.h"
#include "data/owned_buffer.h"

namespace cadre::data {
namespace {

constexpr const char* kWriting = "cannot write rows for another process";
constexpr const char* kReading = "cannot read the rows of another process";

ReadBlocks read_blocks(std::shared_ptr<arrow::Buffer> bytes) {
  arrow::ipc::IpcReadOptions options = arrow::ipc::IpcReadOptions::Defaults();
  options.use_threads = false;
  arrow::io::BufferReader source(std::move(bytes));
  const auto reader = checked(arrow::ipc::RecordBatchStreamReader::Open(&source, options), kReading);
  ReadBlocks read{reader->schema(), {}};
  for (;;) {
    Block block;
    check(reader->ReadNext(&block), kReading);
    if (block == nullptr) return read;
    read.blocks.push_back(std::move(block));
  }
}

}  // namespace

void write_blocks(arrow::io::OutputStream& stream, const arrow::Schema& schema, std::span<const Block> blocks) {
  arrow::ipc::IpcWriteOptions options = arrow::ipc::IpcWriteOptions::Defaults();
  options.alignment = 64;  // Arrow's recommended alignment
  options.use_threads = false;
  const auto shared = std::make_shared<arrow::Schema>(schema);
  const auto writer = checked(arrow::ipc::MakeStreamWriter(&stream, shared, options), kWriting);
  for (const Block& block : blocks) check(writer->WriteRecordBatch(*block), kWriting);
  check(writer->Close(), kWriting);
}

ReadBlocks read_blocks(const Object& object) {
  return read_blocks(std::make_shared<OwnedBuffer>(object.owner(), object.bytes()));
}

ReadBlocks read_blocks(std::shared_ptr<const base::MemoryMap> memory) {
  const std::span<const std::byte> bytes = memory->bytes();
  return read_blocks(std::make_shared<OwnedBuffer>(std::move(memory), bytes));
}

ObjectRef put_blocks(const arrow::Schema& schema, std::span<const Block> blocks) {
  const auto stream = checked(arrow::io::BufferOutputStream::Create(), kWriting);
  write_blocks(*stream, schema, blocks);
  const auto bytes = checked(stream->Finish(), kWriting);
  return put(std::as_bytes(std::span(bytes->data(), static_cast<std::size_t>(bytes->size()))));
}

}  // namespace cadre::data
