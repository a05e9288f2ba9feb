// Values that a program may report, made from a fuzzer's bytes.
#pragma once

#include <fuzzer/FuzzedDataProvider.h>

#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <string>

#include "base/value_limits.h"
#include "cadre/value.h"

namespace cadre::fuzz {

inline std::string text_from(FuzzedDataProvider& input) { return input.ConsumeRandomLengthString(40); }

// Returns any bit pattern, including NaNs.
inline double double_from(FuzzedDataProvider& input) {
  return input.ConsumeBool() ? std::bit_cast<double>(input.ConsumeIntegral<std::uint64_t>())
                             : static_cast<double>(input.ConsumeIntegral<std::int16_t>()) / 8;
}

// Returns a value at this nesting depth; a result's limit of levels is never exceeded.
inline Value value_from(FuzzedDataProvider& input, std::size_t depth = 0);

inline Dict dict_from(FuzzedDataProvider& input, std::size_t depth = 0) {
  Dict entries;
  while (input.remaining_bytes() > 0 && input.ConsumeBool()) {
    std::string key = text_from(input);
    entries.emplace_back(std::move(key), value_from(input, depth + 1));
  }
  return entries;
}

inline List list_from(FuzzedDataProvider& input, std::size_t depth = 0) {
  List items;
  while (input.remaining_bytes() > 0 && input.ConsumeBool()) items.push_back(value_from(input, depth + 1));
  return items;
}

inline Value value_from(FuzzedDataProvider& input, std::size_t depth) {
  const int kinds = depth < base::max_result_depth ? 8 : 6;
  switch (input.ConsumeIntegralInRange(0, kinds - 1)) {
    case 0:
      return {};
    case 1:
      return input.ConsumeBool();
    case 2:
      return input.ConsumeIntegral<std::int64_t>();
    case 3:
      return double_from(input);
    case 4:
      return text_from(input);
    case 5: {
      std::string kind = text_from(input);
      return Reference{std::move(kind), text_from(input)};
    }
    case 6:
      return list_from(input, depth);
    default:
      return dict_from(input, depth);
  }
}

}  // namespace cadre::fuzz
