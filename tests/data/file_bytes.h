// Bytes of files that tests make: numbers, and arrays of numpy's.
#pragma once

#include <cstdint>
#include <string>

namespace cadre::data {

inline std::string little_endian_bytes(std::uint64_t number, int count) {
  std::string bytes;
  for (int i = 0; i < count; ++i, number >>= 8) bytes += static_cast<char>(number);
  return bytes;
}

// Returns a .npy file with this header.
inline std::string npy(const std::string& header, const std::string& values) {
  return std::string("\x93NUMPY\x01\x00", 8) + little_endian_bytes(header.size(), 2) + header + values;
}

// Returns a .npy file of bytes that count up.
inline std::string npy_of(const std::string& shape, int count, int first = 0) {
  std::string values;
  for (int i = 0; i < count; ++i) values += static_cast<char>(first + i);
  return npy("{'descr': '|u1', 'fortran_order': False, 'shape': " + shape + ", }\n", values);
}

}  // namespace cadre::data
