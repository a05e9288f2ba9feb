#include "data/zip_archive.h"

#include <arrow/buffer.h>
#include <arrow/io/interfaces.h>
#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <limits>
#include <string_view>

#include "cadre/error.h"
#include "data/arrow_status.h"

// Source: PKWARE's APPNOTE.TXT 6.3.10.
namespace cadre::data {
namespace {

constexpr const char* kReading = "cannot read a zip archive";
constexpr std::int64_t kEndBytes = 22;
constexpr std::int64_t kEnd64LocatorBytes = 20;
constexpr std::int64_t kEnd64Bytes = 56;
constexpr std::int64_t kEntryBytes = 46;
constexpr std::int64_t kLocalBytes = 30;
constexpr std::int64_t kMostCommentBytes = 65535;
constexpr std::int64_t kMostEntries = 65536;
constexpr std::int64_t kMostDirectoryBytes = std::int64_t{64} << 20;
constexpr std::uint64_t kIn64 = 0xffffffff;  // a number that stands elsewhere, in 64 bits

[[noreturn]] void damaged(const std::string& why) {
  throw StorageError(fmt::format("it is a damaged zip archive: {}; write it again, or leave it out", why));
}

std::string bytes_at(arrow::io::RandomAccessFile& file, std::int64_t begin, std::int64_t size) {
  const auto bytes = checked(file.ReadAt(begin, size), kReading);
  if (bytes->size() < size) damaged("it ends early");
  return bytes->ToString();
}

std::uint64_t number_at(std::string_view bytes, std::size_t at, int size) {
  if (at + static_cast<std::size_t>(size) > bytes.size()) damaged("an entry of its directory ends early");
  std::uint64_t number = 0;
  for (int i = size; i-- > 0;)
    number = number << 8 | static_cast<unsigned char>(bytes[at + static_cast<std::size_t>(i)]);
  return number;
}

// The place of the directory.
struct Directory {
  std::uint64_t entries = 0;
  std::uint64_t size = 0;
  std::uint64_t begin = 0;
};

Directory find_directory(arrow::io::RandomAccessFile& file, std::int64_t bytes) {
  constexpr std::string_view kEnd = "PK\x05\x06";
  const std::int64_t tail_begin = std::max<std::int64_t>(bytes - kEndBytes - kMostCommentBytes, 0);
  const std::string tail = bytes_at(file, tail_begin, bytes - tail_begin);
  const std::size_t end = tail.rfind(kEnd);
  if (end == std::string::npos || tail.size() - end < static_cast<std::size_t>(kEndBytes))
    damaged("it has no directory, or ends early");
  Directory directory{number_at(tail, end + 10, 2), number_at(tail, end + 12, 4), number_at(tail, end + 16, 4)};
  if (directory.entries != 0xffff && directory.size != kIn64 && directory.begin != kIn64) return directory;
  const std::int64_t locator_begin = tail_begin + static_cast<std::int64_t>(end) - kEnd64LocatorBytes;
  if (locator_begin < 0) damaged("it has no directory of 64 bits");
  const std::string locator = bytes_at(file, locator_begin, kEnd64LocatorBytes);
  if (!locator.starts_with(std::string_view("PK\x06\x07"))) return directory;
  const std::uint64_t end64_begin = number_at(locator, 8, 8);
  if (end64_begin > static_cast<std::uint64_t>(bytes - kEnd64Bytes)) damaged("its directory of 64 bits lies outside");
  const std::string end64 = bytes_at(file, static_cast<std::int64_t>(end64_begin), kEnd64Bytes);
  if (!end64.starts_with(std::string_view("PK\x06\x06"))) damaged("it has no directory of 64 bits");
  return {number_at(end64, 32, 8), number_at(end64, 40, 8), number_at(end64, 48, 8)};
}

// Returns a number of an entry, which may stand in its extra field of 64 bits, whose numbers are taken in order.
std::int64_t wide_number(std::uint64_t number, std::string_view extra64, std::size_t& at) {
  if (number == kIn64 && at + 8 <= extra64.size()) {
    number = number_at(extra64, at, 8);
    at += 8;
  }
  if (number > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) damaged("a size is too large");
  return static_cast<std::int64_t>(number);
}

std::string_view find_extra64(std::string_view extra) {
  while (extra.size() >= 4) {
    const std::size_t size = number_at(extra, 2, 2);
    if (number_at(extra, 0, 2) == 1) return extra.substr(4, size);
    extra.remove_prefix(std::min(4 + size, extra.size()));
  }
  return {};
}

// Parses the entry at the beginning of `directory`, and removes it there.
ZipEntry parse_entry(std::string_view& directory, std::int64_t bytes) {
  if (!directory.starts_with(std::string_view("PK\x01\x02"))) damaged("its directory ends early");
  const std::uint64_t flags = number_at(directory, 8, 2);
  const std::uint64_t method = number_at(directory, 10, 2);
  const std::size_t name_size = number_at(directory, 28, 2);
  const std::size_t extra_size = number_at(directory, 30, 2);
  const std::size_t whole =
      static_cast<std::size_t>(kEntryBytes) + name_size + extra_size + number_at(directory, 32, 2);
  if (whole > directory.size()) damaged("its directory ends early");
  ZipEntry entry{.name = std::string(directory.substr(static_cast<std::size_t>(kEntryBytes), name_size)),
                 .checksum = static_cast<std::uint32_t>(number_at(directory, 16, 4)),
                 .is_compressed = method == 8};
  if ((flags & 1) != 0) throw StorageError(fmt::format("its file \"{}\" is encrypted: decrypt it", entry.name));
  if (method != 0 && method != 8)
    throw StorageError(
        fmt::format("its file \"{}\" is compressed by method {} of zip; Deflate, which numpy uses, and "
                    "none are read: write it again",
                    entry.name, method));
  const std::string_view extra64 =
      find_extra64(directory.substr(static_cast<std::size_t>(kEntryBytes) + name_size, extra_size));
  std::size_t at = 0;
  entry.size = wide_number(number_at(directory, 24, 4), extra64, at);
  entry.stored_size = wide_number(number_at(directory, 20, 4), extra64, at);
  entry.header_begin = wide_number(number_at(directory, 42, 4), extra64, at);
  constexpr std::int64_t kMostPerByte = 1032;  // of Deflate
  if (entry.header_begin > bytes - kLocalBytes || entry.stored_size > bytes - kLocalBytes - entry.header_begin)
    damaged(fmt::format("its file \"{}\" lies outside", entry.name));
  if (entry.is_compressed ? entry.size / kMostPerByte > entry.stored_size : entry.size != entry.stored_size)
    damaged(
        fmt::format("its file \"{}\" has {} bytes, which {} cannot hold", entry.name, entry.size, entry.stored_size));
  directory.remove_prefix(whole);
  return entry;
}

// Returns where the bytes of a file begin.
std::int64_t content_begin(arrow::io::RandomAccessFile& file, const ZipEntry& entry) {
  const std::string header = bytes_at(file, entry.header_begin, kLocalBytes);
  if (!header.starts_with(std::string_view("PK\x03\x04")))
    damaged(fmt::format("its file \"{}\" is missing", entry.name));
  return entry.header_begin + kLocalBytes +
         static_cast<std::int64_t>(number_at(header, 26, 2) + number_at(header, 28, 2));
}

// Decompresses up to `size` bytes; returns how many there are.
std::int64_t inflate_into(const arrow::Buffer& stored, std::uint8_t* out, std::int64_t size) {
  z_stream stream = {};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) throw StorageError("there is no memory to decompress a zip archive");
  constexpr std::int64_t kMostAtATime = std::int64_t{1} << 30;
  std::int64_t read = 0;
  std::int64_t made = 0;
  int status = Z_OK;
  while (status == Z_OK && made < size) {
    const std::int64_t input = std::min(stored.size() - read, kMostAtATime);
    const std::int64_t output = std::min(size - made, kMostAtATime);
    stream.next_in = const_cast<Bytef*>(stored.data() + read);  // zlib does not change it
    stream.avail_in = static_cast<uInt>(input);
    stream.next_out = out + made;
    stream.avail_out = static_cast<uInt>(output);
    status = inflate(&stream, Z_NO_FLUSH);
    read += input - stream.avail_in;
    made += output - stream.avail_out;
  }
  inflateEnd(&stream);
  return made;
}

}  // namespace

std::vector<ZipEntry> read_zip_entries(arrow::io::RandomAccessFile& file, std::int64_t bytes) {
  if (bytes < kEndBytes) damaged("it ends early");
  const auto [count, size, begin] = find_directory(file, bytes);
  const auto whole = static_cast<std::uint64_t>(bytes);
  if (begin > whole || size > whole - begin) damaged("its directory lies outside");
  if (count > static_cast<std::uint64_t>(kMostEntries) || size > static_cast<std::uint64_t>(kMostDirectoryBytes))
    throw StorageError(fmt::format("it has {} files, and at most {} are read: divide it", count, kMostEntries));
  const std::string directory = bytes_at(file, static_cast<std::int64_t>(begin), static_cast<std::int64_t>(size));
  std::string_view rest = directory;
  std::vector<ZipEntry> entries;
  for (std::uint64_t i = 0; i < count; ++i) entries.push_back(parse_entry(rest, bytes));
  return entries;
}

std::string read_zip_beginning(arrow::io::RandomAccessFile& file, const ZipEntry& entry, std::int64_t most) {
  constexpr std::int64_t kSlack = 1024;  // Deflate's own, where it cannot make anything smaller
  const std::int64_t size = std::min(entry.size, most);
  const std::int64_t stored_size = std::min(entry.stored_size, size + size / 64 + kSlack);
  const auto stored = checked(file.ReadAt(content_begin(file, entry), stored_size), kReading);
  if (!entry.is_compressed) return stored->ToString().substr(0, static_cast<std::size_t>(size));
  std::string content(static_cast<std::size_t>(size), '\0');
  content.resize(
      static_cast<std::size_t>(inflate_into(*stored, reinterpret_cast<std::uint8_t*>(content.data()), size)));
  return content;
}

std::shared_ptr<arrow::Buffer> read_zip_content(arrow::io::RandomAccessFile& file, const ZipEntry& entry,
                                                arrow::MemoryPool* pool) {
  std::shared_ptr<arrow::Buffer> content =
      checked(file.ReadAt(content_begin(file, entry), entry.stored_size), kReading);
  if (content->size() < entry.stored_size) damaged(fmt::format("its file \"{}\" ends early", entry.name));
  if (entry.is_compressed) {
    std::shared_ptr<arrow::Buffer> whole = checked(arrow::AllocateBuffer(entry.size, pool), kReading);
    if (inflate_into(*content, whole->mutable_data(), entry.size) != entry.size)
      damaged(fmt::format("its file \"{}\" cannot be decompressed", entry.name));
    content = std::move(whole);
  }
  if (crc32_z(0, content->data(), static_cast<std::size_t>(content->size())) != entry.checksum)
    damaged(fmt::format("its file \"{}\" has another checksum than its directory", entry.name));
  return content;
}

}  // namespace cadre::data
