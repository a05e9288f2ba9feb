#include "data/npy_header.h"

#include <arrow/array.h>
#include <arrow/buffer.h>
#include <arrow/buffer_builder.h>
#include <arrow/builder.h>
#include <arrow/type.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include "base/utf8.h"
#include "cadre/error.h"
#include "data/arrow_status.h"

namespace cadre::data {
namespace {

constexpr const char* kMakingArray = "cannot make a column of an array";

[[noreturn]] void damaged(const std::string& why) {
  throw StorageError("it is no array of numpy's, or a damaged one: " + why + "; write it again with numpy.save");
}

// Reads the header's text, a dictionary of Python's: {'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }.
class NpyText {
 public:
  explicit NpyText(std::string_view text) : text_(text) {}

  NpyHeader parse() {
    NpyHeader header;
    bool has_type = false;
    bool has_order = false;
    bool has_shape = false;
    expect('{');
    while (!skips('}')) {
      const std::string_view key = quoted();
      expect(':');
      if (key == "descr" && !std::exchange(has_type, true)) {
        read_type(header);
      } else if (key == "fortran_order" && !std::exchange(has_order, true)) {
        header.is_fortran_order = truth();
      } else if (key == "shape" && !std::exchange(has_shape, true)) {
        header.shape = numbers();
      } else {
        damaged("its header has an entry that it should not have");
      }
      if (!skips(',')) {
        expect('}');
        break;
      }
    }
    if (!has_type || !has_order || !has_shape) damaged("its header lacks an entry");
    return header;
  }

 private:
  void skip_space() {
    while (!text_.empty() && (text_.front() == ' ' || text_.front() == '\n' || text_.front() == '\t'))
      text_.remove_prefix(1);
  }
  bool skips(char wanted) {
    skip_space();
    if (!text_.starts_with(wanted)) return false;
    text_.remove_prefix(1);
    return true;
  }
  void expect(char wanted) {
    if (!skips(wanted)) damaged(fmt::format("its header lacks a \"{}\"", wanted));
  }
  std::string_view quoted() {
    skip_space();
    const char quote = text_.empty() ? 0 : text_.front();
    const std::size_t end = quote == '\'' || quote == '"' ? text_.find(quote, 1) : text_.npos;
    if (end == text_.npos) damaged("its header lacks a name in quotes");
    const std::string_view inside = text_.substr(1, end - 1);
    text_.remove_prefix(end + 1);
    return inside;
  }
  bool truth() {
    skip_space();
    for (const auto& [word, value] : {std::pair("True", true), std::pair("False", false)}) {
      if (!text_.starts_with(word)) continue;
      text_.remove_prefix(std::strlen(word));
      return value;
    }
    damaged("its header does not say in which order the values are");
  }
  std::vector<std::int64_t> numbers() {
    std::vector<std::int64_t> all;
    expect('(');
    while (!skips(')')) {
      skip_space();
      std::int64_t number = -1;
      const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), number);
      if (error != std::errc() || number < 0) damaged("its header has no shape");
      text_.remove_prefix(static_cast<std::size_t>(end - text_.data()));
      all.push_back(number);
      if (!skips(',')) {
        expect(')');
        break;
      }
    }
    return all;
  }
  void read_type(NpyHeader& header) {
    skip_space();
    if (text_.starts_with('['))
      throw StorageError("it is an array of structures: write each of its fields to a file of its own");
    const std::string_view type = quoted();
    if (type == "|O")
      throw StorageError(
          "its values are objects of Python, which numpy has pickled: write an array of numbers, truth values, bytes, "
          "texts or times");
    const auto refuse = [&] {
      throw StorageError(
          fmt::format("its values are of numpy's type \"{}\": convert them to truth values, integers, "
                      "floats, bytes, texts, or times in s, ms, us or ns",
                      type));
    };
    if (type.size() < 3 || std::string_view("<>|=").find(type[0]) == std::string_view::npos) refuse();
    header.is_swapped = type[0] == '>';
    header.kind = type[1];
    const auto [end, error] = std::from_chars(type.data() + 2, type.data() + type.size(), header.item_bytes);
    const std::string_view rest(end, static_cast<std::size_t>(type.data() + type.size() - end));
    if (error != std::errc() || header.item_bytes < 1) refuse();
    if (rest.starts_with('[') && rest.ends_with(']')) header.unit = rest.substr(1, rest.size() - 2);
    if (!rest.empty() && header.unit.empty()) refuse();
    if (header.value_type() == nullptr) refuse();
  }

  std::string_view text_;
};

arrow::TimeUnit::type time_unit(const std::string& unit) {
  return unit == "s"    ? arrow::TimeUnit::SECOND
         : unit == "ms" ? arrow::TimeUnit::MILLI
         : unit == "us" ? arrow::TimeUnit::MICRO
                        : arrow::TimeUnit::NANO;
}

template <class Append>
void for_each_item(const NpyHeader& header, const arrow::Buffer& bytes, std::int64_t count, Append append) {
  for (std::int64_t i = 0; i < count; ++i)
    append(std::string_view(reinterpret_cast<const char*>(bytes.data()) + i * header.item_bytes,
                            static_cast<std::size_t>(header.item_bytes)));
}

// Returns a text of 32-bit code points as UTF-8, without the zeros at its end.
std::string to_utf8_text(std::string_view item, bool is_swapped) {
  std::string text;
  std::size_t ended = 0;
  for (std::size_t at = 0; at + 4 <= item.size(); at += 4) {
    std::uint32_t point = 0;
    std::memcpy(&point, item.data() + at, 4);
    if (is_swapped) point = __builtin_bswap32(point);
    if (point > 0x10FFFF || (point >= 0xD800 && point < 0xE000)) damaged("it has a text that is not Unicode");
    if (point < 0x80) {
      text += static_cast<char>(point);
    } else if (point < 0x800) {
      text += {static_cast<char>(0xC0 | point >> 6), static_cast<char>(0x80 | (point & 0x3F))};
    } else if (point < 0x10000) {
      text += {static_cast<char>(0xE0 | point >> 12), static_cast<char>(0x80 | (point >> 6 & 0x3F)),
               static_cast<char>(0x80 | (point & 0x3F))};
    } else {
      text += {static_cast<char>(0xF0 | point >> 18), static_cast<char>(0x80 | (point >> 12 & 0x3F)),
               static_cast<char>(0x80 | (point >> 6 & 0x3F)), static_cast<char>(0x80 | (point & 0x3F))};
    }
    if (point != 0) ended = text.size();
  }
  text.resize(ended);
  return text;
}

std::shared_ptr<arrow::Buffer> swapped(const arrow::Buffer& bytes, std::int64_t item_bytes, arrow::MemoryPool* pool) {
  std::shared_ptr<arrow::Buffer> result = checked(arrow::AllocateBuffer(bytes.size(), pool), kMakingArray);
  std::uint8_t* const out = result->mutable_data();
  for (std::int64_t at = 0; at < bytes.size(); at += item_bytes)
    std::reverse_copy(bytes.data() + at, bytes.data() + at + item_bytes, out + at);
  return result;
}

// Returns a bit for each time or duration, 0 for numpy's NaT; null if there is none of these.
std::shared_ptr<arrow::Buffer> validity_of_times(const arrow::Buffer& values, std::int64_t count,
                                                 arrow::MemoryPool* pool) {
  arrow::TypedBufferBuilder<bool> are_times(pool);
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t time = 0;
    std::memcpy(&time, values.data() + i * std::int64_t{sizeof time}, sizeof time);
    check(are_times.Append(time != std::numeric_limits<std::int64_t>::min()), kMakingArray);
  }
  return are_times.false_count() == 0 ? nullptr : checked(are_times.Finish(), kMakingArray);
}

}  // namespace

std::vector<std::int64_t> NpyHeader::row_shape() const {
  return {shape.begin() + (shape.empty() ? 0 : 1), shape.end()};
}

std::int64_t NpyHeader::values_per_row() const {
  std::int64_t count = 1;
  for (const std::int64_t width : row_shape()) count *= width;  // checked by parse_npy_header()
  return count;
}

std::shared_ptr<arrow::DataType> NpyHeader::value_type() const {
  const bool is_time_unit = unit == "s" || unit == "ms" || unit == "us" || unit == "ns";
  switch (kind) {
    case 'b':
      return item_bytes == 1 ? arrow::boolean() : nullptr;
    case 'i':
      return item_bytes == 1   ? arrow::int8()
             : item_bytes == 2 ? arrow::int16()
             : item_bytes == 4 ? arrow::int32()
             : item_bytes == 8 ? arrow::int64()
                               : nullptr;
    case 'u':
      return item_bytes == 1   ? arrow::uint8()
             : item_bytes == 2 ? arrow::uint16()
             : item_bytes == 4 ? arrow::uint32()
             : item_bytes == 8 ? arrow::uint64()
                               : nullptr;
    case 'f':
      return item_bytes == 2   ? arrow::float16()
             : item_bytes == 4 ? arrow::float32()
             : item_bytes == 8 ? arrow::float64()
                               : nullptr;
    case 'S':
      return arrow::binary();
    case 'U':
      return arrow::utf8();
    case 'M':
      return item_bytes == 8 && is_time_unit ? arrow::timestamp(time_unit(unit)) : nullptr;
    case 'm':
      return item_bytes == 8 && is_time_unit ? arrow::duration(time_unit(unit)) : nullptr;
    default:
      return nullptr;
  }
}

NpyHeader parse_npy_header(std::string_view beginning, std::int64_t file_bytes) {
  constexpr std::string_view kMagic = "\x93NUMPY";
  if (!beginning.starts_with(kMagic)) damaged("it does not begin as one");
  const auto byte = [&](std::size_t at) -> std::size_t {
    if (at >= beginning.size()) damaged("it ends early");
    return static_cast<unsigned char>(beginning[at]);
  };
  const std::size_t version = byte(6);
  if (version < 1 || version > 3) damaged(fmt::format("it has version {}", version));
  const std::size_t size =
      version == 1 ? byte(8) | byte(9) << 8 : byte(8) | byte(9) << 8 | byte(10) << 16 | byte(11) << 24;
  const std::size_t begin = version == 1 ? 10 : 12;
  if (begin + size > beginning.size()) {
    if (std::ssize(beginning) == file_bytes) damaged("it ends early");
    damaged(fmt::format("its header has {} bytes", size));
  }
  NpyHeader header = NpyText(beginning.substr(begin, size)).parse();
  header.data_begin = static_cast<std::int64_t>(begin + size);
  bool fits = header.kind != 'U' || !__builtin_mul_overflow(header.item_bytes, 4, &header.item_bytes);
  std::int64_t bytes = header.item_bytes;
  // The number of rows comes last: the size of a row is a number also if there are none.
  for (const std::int64_t width : header.row_shape()) fits = fits && !__builtin_mul_overflow(bytes, width, &bytes);
  fits = fits && !__builtin_mul_overflow(bytes, header.rows(), &bytes);
  if (!fits) damaged("its shape is larger than any memory");
  if ((header.kind == 'S' || header.kind == 'U') && header.shape.size() > 1)
    throw StorageError("it has bytes or texts in more than one dimension: write them in one dimension");
  for (const std::int64_t width : header.row_shape()) {
    if (width == 0) throw StorageError("its rows have no values");
  }
  if (header.values_per_row() > (std::int64_t{1} << 31) - 1)
    throw StorageError(
        fmt::format("its rows have {} values, and a row has at most 2^31 - 1: divide them", header.values_per_row()));
  if (file_bytes - header.data_begin < bytes)
    damaged(fmt::format("it ends early: its values take {} bytes, and {} are there", bytes,
                        file_bytes - header.data_begin));
  return header;
}

std::shared_ptr<arrow::Array> make_npy_values(const NpyHeader& header, const std::shared_ptr<arrow::Buffer>& bytes,
                                              std::int64_t rows, arrow::MemoryPool* pool) {
  const std::int64_t count = rows * header.values_per_row();
  const auto finish = [](arrow::ArrayBuilder& builder) { return checked(builder.Finish(), kMakingArray); };
  if (header.kind == 'b') {
    arrow::BooleanBuilder builder(pool);
    check(builder.AppendValues(bytes->data(), count), kMakingArray);
    return finish(builder);
  }
  if (header.kind == 'S') {
    arrow::BinaryBuilder builder(pool);
    for_each_item(header, *bytes, count, [&](std::string_view item) {
      check(builder.Append(item.substr(0, item.find_last_not_of('\0') + 1)), kMakingArray);
    });
    return finish(builder);
  }
  if (header.kind == 'U') {
    arrow::StringBuilder builder(pool);
    for_each_item(header, *bytes, count, [&](std::string_view item) {
      check(builder.Append(to_utf8_text(item, header.is_swapped)), kMakingArray);
    });
    return finish(builder);
  }
  const bool is_swapped = header.is_swapped && header.item_bytes > 1;
  const auto values = is_swapped ? swapped(*bytes, header.item_bytes, pool) : bytes;
  const bool are_times = header.kind == 'M' || header.kind == 'm';
  const auto validity = are_times ? validity_of_times(*values, count, pool) : nullptr;
  return arrow::MakeArray(arrow::ArrayData::Make(header.value_type(), count, {validity, values},
                                                 validity == nullptr ? 0 : arrow::kUnknownNullCount));
}

std::shared_ptr<arrow::Buffer> to_c_order(const NpyHeader& header, const std::shared_ptr<arrow::Buffer>& bytes,
                                          arrow::MemoryPool* pool) {
  if (!header.is_fortran_order || header.shape.size() < 2) return bytes;
  const std::size_t dimensions = header.shape.size();
  std::vector<std::int64_t> strides(dimensions, header.item_bytes);  // in the file
  for (std::size_t i = 1; i < dimensions; ++i) strides[i] = strides[i - 1] * header.shape[i - 1];
  std::shared_ptr<arrow::Buffer> result =
      checked(arrow::AllocateBuffer(header.rows() * header.row_bytes(), pool), kMakingArray);
  std::uint8_t* out = result->mutable_data();
  std::vector<std::int64_t> at(dimensions, 0);
  std::int64_t place = 0;  // of `at` in the file
  for (std::int64_t left = header.rows() * header.values_per_row(); left > 0; --left) {
    std::memcpy(out, bytes->data() + place, static_cast<std::size_t>(header.item_bytes));
    out += header.item_bytes;
    for (std::size_t i = dimensions; i-- > 0;) {
      place += strides[i];
      if (++at[i] < header.shape[i]) break;
      place -= strides[i] * header.shape[i];
      at[i] = 0;
    }
  }
  return result;
}

}  // namespace cadre::data
