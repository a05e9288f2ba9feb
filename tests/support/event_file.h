// Reads the values of a TensorBoard event file, in order.
#pragma once

#include <bit>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "base/crc32c.h"
#include "loggers/protobuf.h"

namespace cadre::test_support {

struct EventValue {
  double wall_time = 0;
  std::int64_t step = 0;
  std::string tag = {};
  unsigned kind = 0;         // field number in Summary.Value: 2 simple_value, 5 histo, 9 metadata
  float scalar = 0;          // if kind is 2
  std::string message = {};  // for other kinds

  bool operator==(const EventValue&) const = default;
};

inline std::uint64_t little_endian(std::string_view bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

// Returns the payloads of TFRecord frames. Throws std::runtime_error unless all frames are complete and have correct
// checksums.
inline std::vector<std::string> records_of(std::string_view file) {
  const auto check = [](std::string_view bytes, std::string_view masked) {
    const std::uint32_t crc = base::crc32c(bytes);
    if (little_endian(masked) != static_cast<std::uint32_t>((crc >> 15 | crc << 17) + 0xa282ead8u))
      throw std::runtime_error("a record's checksum is wrong");
  };
  std::vector<std::string> records;
  while (!file.empty()) {
    if (file.size() < 16) throw std::runtime_error("a record is torn");
    check(file.substr(0, 8), file.substr(8, 4));
    const std::uint64_t size = little_endian(file.substr(0, 8));
    if (size > file.size() - 16) throw std::runtime_error("a record is torn");
    check(file.substr(12, size), file.substr(12 + size, 4));
    records.emplace_back(file.substr(12, size));
    file.remove_prefix(16 + size);
  }
  return records;
}

inline std::vector<EventValue> event_values(std::string_view file) {
  using loggers::protobuf::take_field;
  std::vector<EventValue> values;
  for (const std::string& record : records_of(file)) {
    std::string_view event = record;
    EventValue value;
    while (const auto field = take_field(event)) {
      if (field->number == 1) value.wall_time = std::bit_cast<double>(field->value);
      if (field->number == 2) value.step = static_cast<std::int64_t>(field->value);
      std::string_view summary = field->number == 5 ? field->bytes : std::string_view();
      while (const auto entry = take_field(summary)) {
        std::string_view parts = entry->bytes;
        while (const auto part = take_field(parts)) {
          if (part->number == 1) {
            value.tag = part->bytes;
            continue;
          }
          value.kind = part->number;
          value.scalar = part->number == 2 ? std::bit_cast<float>(static_cast<std::uint32_t>(part->value)) : 0;
          value.message = part->bytes;
        }
        values.push_back(value);
      }
    }
  }
  return values;
}

}  // namespace cadre::test_support
