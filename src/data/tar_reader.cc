#include "data/tar_reader.h"

#include <arrow/buffer.h>
#include <arrow/io/interfaces.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <string_view>
#include <utility>

#include "cadre/error.h"
#include "data/arrow_status.h"
#include "data/files.h"

namespace cadre::data {
namespace {

constexpr std::int64_t kBlockBytes = 512;
constexpr std::int64_t kMostContentBytes = (std::int64_t{1} << 31) - 1;
constexpr std::int64_t kMostTextBytes = std::int64_t{1} << 20;  // of names and attributes

// `file`: the latest one whose beginning was there; empty: none.
[[noreturn]] void archive_ends_early(const char* place, const std::string& file) {
  throw StorageError(fmt::format("the archive ends early{}: write it again, or leave it out",
                                 file.empty() ? "" : fmt::format(", {} its file \"{}\"", place, file)));
}

[[noreturn]] void damaged_archive(const char* why) {
  throw StorageError(
      fmt::format("the archive is damaged, or no tar archive: {}; write it again, or leave it out", why));
}

std::string_view until_zero(std::string_view field) { return field.substr(0, field.find('\0')); }

// Returns a number in octal digits, or in GNU's binary form.
std::int64_t number_of(std::string_view field) {
  if ((static_cast<unsigned char>(field.front()) & 0x80) != 0) {
    std::uint64_t number = static_cast<unsigned char>(field.front()) & 0x7f;
    for (const char byte : field.substr(1)) {
      if (number >> 55 != 0) damaged_archive("a number is too large");
      number = number << 8 | static_cast<unsigned char>(byte);
    }
    return static_cast<std::int64_t>(number);
  }
  field = until_zero(field);
  field.remove_prefix(std::min(field.find_first_not_of(' '), field.size()));
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), number, 8);
  if (error == std::errc::invalid_argument) return 0;
  if (error != std::errc() || number < 0) damaged_archive("a number is too large");
  return number;
}

bool has_right_sum(std::string_view block) {
  std::int64_t sum = 0;
  for (std::size_t at = 0; at < block.size(); ++at)
    sum += at >= 148 && at < 156 ? ' ' : static_cast<unsigned char>(block[at]);
  return sum == number_of(block.substr(148, 8));
}

// Reads the attributes of a file in pax's form: "<length> <name>=<value>\n".
std::map<std::string, std::string> attributes_of(std::string_view text) {
  std::map<std::string, std::string> all;
  while (!text.empty()) {
    std::size_t length = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), length);
    const auto digits = static_cast<std::size_t>(end - text.data());
    if (error != std::errc() || length > text.size() || length < digits + 2) damaged_archive("its attributes");
    const std::string_view entry = text.substr(digits + 1, length - digits - 2);
    const std::size_t equals = entry.find('=');
    if (equals == entry.npos) damaged_archive("its attributes");
    all[std::string(entry.substr(0, equals))] = entry.substr(equals + 1);
    text.remove_prefix(length);
  }
  return all;
}

}  // namespace

struct TarReader::Header {
  std::string name = {};
  std::int64_t size = 0;
  char type = 0;
};

TarReader::TarReader(std::shared_ptr<arrow::io::InputStream> stream, std::string doing)
    : stream_(std::move(stream)), doing_(std::move(doing)) {}

std::shared_ptr<arrow::Buffer> TarReader::read(std::int64_t bytes) { return read_up_to(*stream_, bytes, doing_); }

std::optional<TarReader::Header> TarReader::read_header() {
  const auto block = read(kBlockBytes);
  if (block->size() < kBlockBytes) archive_ends_early("after", name_);
  const std::string_view bytes(reinterpret_cast<const char*>(block->data()), static_cast<std::size_t>(kBlockBytes));
  if (bytes.find_first_not_of('\0') == bytes.npos) return std::nullopt;
  if (!has_right_sum(bytes)) damaged_archive("the checksum of a member is wrong");
  Header header{.name = std::string(until_zero(bytes.substr(0, 100))),
                .size = number_of(bytes.substr(124, 12)),
                .type = bytes[156]};
  const std::string_view prefix = until_zero(bytes.substr(345, 155));
  if (bytes.substr(257, 6) == std::string_view("ustar\0", 6) && !prefix.empty())
    header.name = std::string(prefix) + "/" + header.name;
  return header;
}

void TarReader::skip_member() {
  constexpr std::int64_t kPartBytes = std::int64_t{1} << 20;  // a stream of Arrow's reads all that it skips into memory
  for (std::int64_t* const rest : {&left_, &padding_}) {
    for (std::int64_t bytes = std::exchange(*rest, 0); bytes > 0;) {
      const auto part = checked(stream_->Read(std::min(bytes, kPartBytes)), doing_);
      if (part->size() == 0) return;  // the next header is missing then
      bytes -= part->size();
    }
  }
}

std::shared_ptr<arrow::Buffer> TarReader::read_member(std::int64_t bytes, const char* place) {
  auto content = read(bytes);
  if (content->size() < bytes) archive_ends_early(place, name_);
  left_ = 0;
  skip_member();
  return content;
}

std::string TarReader::read_text(std::int64_t bytes) {
  if (bytes > kMostTextBytes) damaged_archive("a name has more than 1 MiB");
  return read_member(bytes, "after")->ToString();
}

std::optional<std::string> TarReader::next() {
  std::string long_name;
  std::optional<std::int64_t> long_size;
  for (;;) {
    skip_member();
    auto header = read_header();
    if (!header) return std::nullopt;
    const bool is_about_next = header->type == 'L' || header->type == 'K' || header->type == 'x' || header->type == 'g';
    if (!is_about_next) header->size = std::exchange(long_size, std::nullopt).value_or(header->size);
    left_ = header->size;
    padding_ = (kBlockBytes - header->size % kBlockBytes) % kBlockBytes;
    switch (header->type) {
      case 'L':
        long_name = until_zero(read_text(header->size));
        break;
      case 'x': {
        auto attributes = attributes_of(read_text(header->size));
        if (const auto path = attributes.find("path"); path != attributes.end()) long_name = path->second;
        if (const auto size = attributes.find("size"); size != attributes.end()) {
          std::int64_t number = -1;
          std::from_chars(size->second.data(), size->second.data() + size->second.size(), number);
          if (number < 0) damaged_archive("its attributes");
          long_size = number;
        }
        break;
      }
      case 'S':
        throw StorageError("the archive has a file with holes: write it without --sparse");
      case '0':
      case '\0':
      case '7': {
        std::string name = long_name.empty() ? std::move(header->name) : std::exchange(long_name, "");
        if (!name.ends_with('/')) return name_ = std::move(name);
        break;
      }
      default:
        if (!is_about_next) long_name.clear();
    }
  }
}

std::shared_ptr<arrow::Buffer> TarReader::content() {
  if (left_ > kMostContentBytes)
    throw StorageError(fmt::format("a file in the archive has {} bytes, and it may have up to 2 GiB", left_));
  return read_member(left_, "in");
}

}  // namespace cadre::data
