#include "torch/zip_archive.h"

#include <zlib.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "cadre/error.h"

namespace cadre::pt {
namespace {

// Layouts: APPNOTE.TXT of PKWARE, sections 4.3.7 (local header), 4.3.12 (directory entry), 4.3.14 to 4.3.16 (end).
constexpr std::uint32_t local_signature = 0x04034b50;
constexpr std::uint32_t entry_signature = 0x02014b50;
constexpr std::uint32_t end_signature = 0x06054b50;
constexpr std::uint32_t end64_signature = 0x06064b50;
constexpr std::uint32_t locator64_signature = 0x07064b50;
constexpr std::size_t local_size = 30;
constexpr std::size_t entry_size = 46;
constexpr std::size_t end_size = 22;
constexpr std::size_t end64_size = 56;
constexpr std::size_t locator64_size = 20;
constexpr std::uint16_t zip64_extra = 0x0001;
constexpr std::uint16_t in_zip64_16 = 0xffff;
constexpr std::uint32_t in_zip64_32 = 0xffffffff;

constexpr std::uint64_t max_records = 1'000'000;
constexpr std::uint64_t max_directory_bytes = std::uint64_t{256} << 20;

// Returns the little-endian number at a position that the caller has checked.
template <class T>
T number_at(std::span<const std::byte> bytes, std::size_t position) {
  T value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    value = static_cast<T>(value | static_cast<T>(std::to_integer<T>(bytes[position + i]) << (8 * i)));
  }
  return value;
}

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// An entry of the archive's directory, with the values of its zip64 field applied.
struct Entry {
  std::uint16_t flags = 0;
  std::uint16_t method = 0;
  std::uint32_t crc32 = 0;
  std::uint64_t packed_size = 0;
  std::uint64_t size = 0;
  std::uint64_t header_offset = 0;
  std::string name;
  std::size_t bytes = 0;  // size of the entry itself
};

// Replaces fields of all ones with the 64-bit values of the zip64 field. Returns false if there are too few values.
bool read_zip64(std::span<const std::byte> extra, Entry& entry) {
  while (extra.size() >= 4) {
    const auto id = number_at<std::uint16_t>(extra, 0);
    const std::size_t length = number_at<std::uint16_t>(extra, 2);
    if (length > extra.size() - 4) return false;
    std::span<const std::byte> field = extra.subspan(4, length);
    extra = extra.subspan(4 + length);
    if (id != zip64_extra) continue;
    for (std::uint64_t* value : {&entry.size, &entry.packed_size, &entry.header_offset}) {
      if (*value != in_zip64_32) continue;
      if (field.size() < 8) return false;
      *value = number_at<std::uint64_t>(field, 0);
      field = field.subspan(8);
    }
  }
  return true;
}

// Parses the entry at the start of `bytes`; returns empty if it is damaged.
std::optional<Entry> parse_entry(std::span<const std::byte> bytes) {
  if (bytes.size() < entry_size || number_at<std::uint32_t>(bytes, 0) != entry_signature) return {};
  Entry entry;
  entry.flags = number_at<std::uint16_t>(bytes, 8);
  entry.method = number_at<std::uint16_t>(bytes, 10);
  entry.crc32 = number_at<std::uint32_t>(bytes, 16);
  entry.packed_size = number_at<std::uint32_t>(bytes, 20);
  entry.size = number_at<std::uint32_t>(bytes, 24);
  entry.header_offset = number_at<std::uint32_t>(bytes, 42);
  const std::size_t name_size = number_at<std::uint16_t>(bytes, 28);
  const std::size_t extra_size = number_at<std::uint16_t>(bytes, 30);
  const std::size_t comment_size = number_at<std::uint16_t>(bytes, 32);
  entry.bytes = entry_size + name_size + extra_size + comment_size;
  if (entry.bytes > bytes.size()) return {};
  entry.name = text_of(bytes.subspan(entry_size, name_size));
  if (!read_zip64(bytes.subspan(entry_size + name_size, extra_size), entry)) return {};
  return entry;
}

base::ReadableFile open_archive(const std::filesystem::path& path) {
  auto file = base::ReadableFile::open(path, base::ReadableFile::Links::follow);
  if (!file) throw NotFound("no file " + path.string());
  return std::move(*file);
}

}  // namespace

ZipArchive::ZipArchive(const std::filesystem::path& file) : file_(open_archive(file)), size_(file_.size()) {
  read_directory(find_directory());
}

void ZipArchive::read(std::string_view name, std::span<std::byte> target) const {
  const Record& found = record(name);
  std::byte header[local_size];
  read_bytes(found.header_offset, header);
  if (number_at<std::uint32_t>(header, 0) != local_signature) {
    fail(found.header_offset, "there is no record \"" + std::string(name) + "\" where the directory says");
  }
  const std::uint64_t offset =
      found.header_offset + local_size + number_at<std::uint16_t>(header, 26) + number_at<std::uint16_t>(header, 28);
  if (offset > found.end || target.size() > found.end - offset)
    fail(found.header_offset, "record \"" + std::string(name) + "\" reaches into what follows it");
  read_bytes(offset, target);
  const auto crc32 = crc32_z(0, reinterpret_cast<const Bytef*>(target.data()), target.size());
  if (crc32 != found.crc32) fail(offset, "the checksum of record \"" + std::string(name) + "\" is wrong");
}

std::string ZipArchive::read_text(std::string_view name, std::size_t limit_bytes) const {
  const Record& found = record(name);
  if (found.size > limit_bytes) {
    fail(found.header_offset, "record \"" + std::string(name) + "\" has " + std::to_string(found.size) +
                                  " bytes, at most " + std::to_string(limit_bytes) + " are read");
  }
  std::string text(found.size, '\0');
  read(name, std::as_writable_bytes(std::span(text)));
  return text;
}

const ZipArchive::Record& ZipArchive::record(std::string_view name) const {
  const auto found = records_.find(name);
  if (found == records_.end()) fail(0, "the archive has no record \"" + std::string(name) + "\"");
  if (!found->second.is_plain) {
    fail(found->second.header_offset,
         "record \"" + std::string(name) + "\" is compressed; torch.save does not do that");
  }
  return found->second;
}

// Locates the directory from the end record, which is at the end of the file: torch.save writes no comment after it.
ZipArchive::Directory ZipArchive::find_directory() const {
  if (size_ < end_size) fail(size_, "too short for a file of torch.save");
  const std::uint64_t end_offset = size_ - end_size;
  std::byte end[end_size];
  read_bytes(end_offset, end);
  if (number_at<std::uint32_t>(end, 0) != end_signature) {
    fail(end_offset,
         "no end of a zip archive: the file is cut, or was not written by torch.save of PyTorch 1.6 or newer");
  }
  Directory directory{.offset = number_at<std::uint32_t>(end, 16),
                      .size = number_at<std::uint32_t>(end, 12),
                      .record_count = number_at<std::uint16_t>(end, 10),
                      .end = end_offset};
  const bool is_zip64 =
      directory.offset == in_zip64_32 || directory.size == in_zip64_32 || directory.record_count == in_zip64_16;
  if (!is_zip64) return directory;

  if (end_offset < locator64_size + end64_size) fail(end_offset, "no zip64 locator");
  const std::uint64_t locator_offset = end_offset - locator64_size;
  std::byte locator[locator64_size];
  read_bytes(locator_offset, locator);
  if (number_at<std::uint32_t>(locator, 0) != locator64_signature) fail(locator_offset, "no zip64 locator");
  const auto end64_offset = number_at<std::uint64_t>(locator, 8);
  if (end64_offset != locator_offset - end64_size)
    fail(end64_offset, "the zip64 end of the archive lies elsewhere than before its locator");
  std::byte end64[end64_size];
  read_bytes(end64_offset, end64);
  if (number_at<std::uint32_t>(end64, 0) != end64_signature) fail(end64_offset, "no zip64 end of the archive");
  return {.offset = number_at<std::uint64_t>(end64, 48),
          .size = number_at<std::uint64_t>(end64, 40),
          .record_count = number_at<std::uint64_t>(end64, 32),
          .end = end64_offset};
}

void ZipArchive::read_directory(const Directory& directory) {
  if (directory.size > max_directory_bytes || directory.record_count > max_records) {
    fail(directory.offset, "a directory of " + std::to_string(directory.record_count) + " records is not read");
  }
  if (directory.offset > directory.end || directory.size > directory.end - directory.offset) {
    fail(directory.offset, "the archive's directory reaches beyond where its end begins");
  }
  std::vector<std::byte> bytes(directory.size);
  read_bytes(directory.offset, bytes);
  std::span<const std::byte> rest = bytes;
  for (std::uint64_t i = 0; i < directory.record_count; ++i) {
    const std::uint64_t offset = directory.offset + (bytes.size() - rest.size());
    std::optional<Entry> entry = parse_entry(rest);
    if (!entry) fail(offset, "the archive's directory is damaged");
    rest = rest.subspan(entry->bytes);
    constexpr std::uint16_t encrypted = 1;
    const bool is_plain = entry->method == 0 && entry->packed_size == entry->size && (entry->flags & encrypted) == 0;
    if (entry->size > size_) fail(offset, "record \"" + entry->name + "\" is larger than the file");
    const auto slash = entry->name.find('/');
    if (slash == std::string::npos) fail(offset, "record \"" + entry->name + "\" lies in no folder");
    const Record found{
        .header_offset = entry->header_offset, .size = entry->size, .crc32 = entry->crc32, .is_plain = is_plain};
    if (!records_.emplace(entry->name.substr(slash + 1), found).second) {
      fail(offset, "record \"" + entry->name + "\" is there twice");
    }
  }
  if (!rest.empty()) fail(directory.offset, "the archive's directory has more records than it says");
  find_ends(directory.offset);
}

// Finds the end of each record and refuses overlaps: with shared bytes a small file could have records of any size.
void ZipArchive::find_ends(std::uint64_t directory_offset) {
  std::vector<std::pair<const std::string, Record>*> in_order;
  for (auto& entry : records_) in_order.push_back(&entry);
  std::ranges::sort(in_order, std::greater(), [](const auto* entry) { return entry->second.header_offset; });
  std::uint64_t end = directory_offset;
  for (auto* entry : in_order) {
    auto& [name, one] = *entry;
    if (one.header_offset > end || end - one.header_offset < local_size ||
        (one.is_plain && end - one.header_offset - local_size < one.size))
      fail(one.header_offset, "record \"" + name + "\" reaches into what follows it");
    one.end = end;
    end = one.header_offset;
  }
}

void ZipArchive::read_bytes(std::uint64_t offset, std::span<std::byte> target) const {
  if (offset > size_ || target.size() > size_ - offset) {
    fail(offset,
         std::to_string(target.size()) + " bytes reach beyond the end of the file, which has " + std::to_string(size_));
  }
  const std::size_t got = file_.read(offset, target);
  if (got < target.size()) fail(offset + got, "the file became shorter while it was read");
}

void ZipArchive::fail(std::uint64_t offset, const std::string& what) const {
  throw StorageError("cannot load " + file_.path().string() + ", offset " + std::to_string(offset) + ": " + what);
}

}  // namespace cadre::pt
