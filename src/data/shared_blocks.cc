#include "data/shared_blocks.h"

#include <arrow/io/file.h>
#include <arrow/record_batch.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/system_error.h"
#include "data/arrow_status.h"

namespace cadre::data {
namespace {

constexpr const char* kName = "cadre-rows";
constexpr const char* kWriting = "cannot write rows for another process";

// Opens a stream on a duplicate of `fd`, which the stream closes.
std::shared_ptr<arrow::io::FileOutputStream> stream_to(int fd) {
  const int duplicate = ::fcntl(fd, F_DUPFD_CLOEXEC, 0);
  if (duplicate < 0) base::throw_storage_error("write", kName);
  return checked(arrow::io::FileOutputStream::Open(duplicate), kWriting);
}

}  // namespace

SharedBlocks::SharedBlocks(std::span<const Block> blocks) : memory_(::memfd_create(kName, MFD_CLOEXEC)) {
  if (!memory_) base::throw_storage_error("make memory for", kName);
  if (blocks.empty()) return;
  const auto stream = stream_to(memory_.get());
  write_blocks(*stream, *blocks.front()->schema(), blocks);
  bytes_ = checked(stream->Tell(), kWriting);
  check(stream->Close(), kWriting);
}

Value SharedBlocks::ticket() const {
  return {{"path", fmt::format("/proc/{}/fd/{}", ::getpid(), memory_.get())}, {"bytes", bytes_}};
}

std::shared_ptr<const base::MemoryMap> map_shared(const Value& ticket) {
  const Config entries(ticket);
  const auto bytes = entries.get<std::size_t>("bytes");
  if (bytes == 0) return nullptr;
  const auto path = entries.get<std::string>("path");
  const base::FileDescriptor memory = base::open_file(path, O_RDONLY, "map the rows of another process at");
  return std::make_shared<const base::MemoryMap>(memory.get(), bytes, path);
}

ReadBlocks read_shared(std::shared_ptr<const base::MemoryMap> memory) {
  return memory == nullptr ? ReadBlocks{} : read_blocks(std::move(memory));
}

}  // namespace cadre::data
