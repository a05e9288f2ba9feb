#include "storage/copy.h"

#include <fcntl.h>

#include <algorithm>
#include <span>

#include "base/checksum.h"
#include "base/file_descriptor.h"

namespace cadre::storage {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t kPieceBytes = std::size_t{4} << 20;

base::ReadableFile open(const fs::path& path) {
  auto file = base::ReadableFile::open(path, base::ReadableFile::Links::refuse);
  if (!file) throw StorageError(path.string() + " is not there");
  return std::move(*file);
}

class Counter {
 public:
  void add(std::string_view piece) {
    checksum_.add(piece);
    size_ += static_cast<std::int64_t>(piece.size());
  }
  Contents contents() const { return {size_, checksum_.value()}; }

 private:
  base::Checksum checksum_;
  std::int64_t size_ = 0;
};

}  // namespace

LocalFile::LocalFile(const FileToUpload& file)
    : file_(open(file.path)),
      stop_(file.stop),
      size_(file_.size()),
      buffer_(std::make_unique_for_overwrite<char[]>(std::min<std::uint64_t>(kPieceBytes, size_))) {}

std::string_view LocalFile::operator()() {
  if (stop_ != nullptr && *stop_) throw Interrupted("an upload was given up");
  const std::span<char> wanted(buffer_.get(), std::min<std::uint64_t>(kPieceBytes, size_ - offset_));
  if (wanted.empty()) return {};
  if (file_.read(offset_, std::as_writable_bytes(wanted)) != wanted.size())
    throw StorageError(file_.path().string() + " became shorter while it was read");
  offset_ += wanted.size();
  return {wanted.data(), wanted.size()};
}

Contents read_pieces(LocalFile& file, const std::function<void(std::string_view)>& take) {
  Counter counter;
  for (std::string_view piece = file(); !piece.empty(); piece = file()) {
    take(piece);
    counter.add(piece);
  }
  return counter.contents();
}

Contents write_pieces(const fs::path& file, const std::function<std::string_view()>& next) {
  base::FileDescriptor target = base::open_own_file(file, O_WRONLY | O_CREAT | O_TRUNC);
  Counter counter;
  for (std::string_view piece = next(); !piece.empty(); piece = next()) {
    base::write_all(target.get(), piece, file);
    counter.add(piece);
  }
  base::close_written(target, file);
  return counter.contents();
}

}  // namespace cadre::storage
