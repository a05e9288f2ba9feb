// The wire format of protocol buffers (protobuf.dev/programming-guides/encoding), as far as event files need it: fields
// are appended to a message's bytes, and read in the order of the bytes.
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

namespace cadre::loggers::protobuf {

enum class WireType : unsigned { varint = 0, eight_bytes = 1, length_delimited = 2, four_bytes = 5 };

inline void append_varint(std::string& out, std::uint64_t value) {
  while (value >= 0x80) {
    out += static_cast<char>(value | 0x80u);
    value >>= 7;
  }
  out += static_cast<char>(value);
}

inline std::size_t varint_size(std::uint64_t value) {
  return (static_cast<std::size_t>(std::bit_width(value | 1)) + 6) / 7;
}

inline void append_key(std::string& out, unsigned field, WireType type) {
  append_varint(out, field << 3 | static_cast<unsigned>(type));
}

// Appends the bytes of an unsigned integer, the lowest first.
inline void append_little_endian(std::string& out, std::unsigned_integral auto value) {
  char bytes[sizeof value];
  for (std::size_t i = 0; i < sizeof value; ++i) bytes[i] = static_cast<char>(value >> 8 * i & 0xffu);
  out.append(bytes, sizeof value);
}

inline void append_integer(std::string& out, unsigned field, std::int64_t value) {
  append_key(out, field, WireType::varint);
  append_varint(out, static_cast<std::uint64_t>(value));
}

inline void append_double(std::string& out, unsigned field, double value) {
  append_key(out, field, WireType::eight_bytes);
  append_little_endian(out, std::bit_cast<std::uint64_t>(value));
}

inline void append_float(std::string& out, unsigned field, float value) {
  append_key(out, field, WireType::four_bytes);
  append_little_endian(out, std::bit_cast<std::uint32_t>(value));
}

// Appends text (which must be UTF-8), bytes, a message or packed numbers.
inline void append_bytes(std::string& out, unsigned field, std::string_view bytes) {
  append_key(out, field, WireType::length_delimited);
  append_varint(out, bytes.size());
  out += bytes;
}

struct Field {
  unsigned number = 0;
  WireType type = {};
  std::uint64_t value = 0;      // a number's bits
  std::string_view bytes = {};  // content of a length-delimited field
};

// Removes the first field of a message and returns it; returns nothing at the end or if the rest is not a field.
inline std::optional<Field> take_field(std::string_view& message) {
  const auto take_varint = [&]() -> std::optional<std::uint64_t> {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && !message.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(message.front());
      message.remove_prefix(1);
      value |= std::uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return value;
    }
    return std::nullopt;
  };
  const auto take_fixed = [&](std::size_t size) -> std::optional<std::uint64_t> {
    if (message.size() < size) return std::nullopt;
    std::uint64_t value = 0;
    for (std::size_t i = size; i-- > 0;) value = value << 8 | static_cast<unsigned char>(message[i]);
    message.remove_prefix(size);
    return value;
  };
  const std::optional<std::uint64_t> key = take_varint();
  if (!key) return std::nullopt;
  Field field{.number = static_cast<unsigned>(*key >> 3), .type = static_cast<WireType>(*key & 7)};
  const bool fixed = field.type == WireType::eight_bytes || field.type == WireType::four_bytes;
  const std::optional<std::uint64_t> value =
      fixed ? take_fixed(field.type == WireType::eight_bytes ? 8 : 4) : take_varint();
  if (!value) return std::nullopt;
  field.value = *value;
  if (field.type == WireType::length_delimited) {
    if (*value > message.size()) return std::nullopt;
    field.bytes = message.substr(0, *value);
    message.remove_prefix(*value);
  }
  return field;
}

}  // namespace cadre::loggers::protobuf
