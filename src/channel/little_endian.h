// Numbers as bytes, the least significant first, on every machine.
#pragma once

#include <concepts>
#include <cstddef>
#include <span>

#include "channel/frame.h"

namespace cadre::channel {

template <std::unsigned_integral Number>
void append_number(Bytes& bytes, Number number) {
  for (std::size_t i = 0; i < sizeof number; ++i) bytes.push_back(static_cast<std::byte>(number >> (8 * i)));
}

// Reads the number in the first bytes. `bytes` must have at least sizeof(Number).
template <std::unsigned_integral Number>
Number read_number(std::span<const std::byte> bytes) {
  Number number = 0;
  for (std::size_t i = 0; i < sizeof number; ++i)
    number |= static_cast<Number>(std::to_integer<Number>(bytes[i]) << (8 * i));
  return number;
}

}  // namespace cadre::channel
