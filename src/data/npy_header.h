// The header of a file of numpy's (.npy): the type and shape of its array.
#pragma once

#include <arrow/type_fwd.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace cadre::data {

// An array in a file of numpy's.
struct NpyHeader {
  char kind = 0;                         // b, i, u, f, S, U, M or m, as numpy has them
  std::int64_t item_bytes = 0;           // of one value
  bool is_swapped = false;               // values are big-endian
  bool is_fortran_order = false;         // the first dimension is the innermost one
  std::string unit = {};                 // of M and m: "ns" and the like
  std::vector<std::int64_t> shape = {};  // none: one value
  std::int64_t data_begin = 0;           // of the values in the file, in bytes

  std::int64_t rows() const { return shape.empty() ? 1 : shape.front(); }
  // Returns the shape of a row: that without the first dimension.
  std::vector<std::int64_t> row_shape() const;
  std::int64_t values_per_row() const;
  std::int64_t row_bytes() const { return values_per_row() * item_bytes; }
  // Returns Arrow's type of a value.
  std::shared_ptr<arrow::DataType> value_type() const;
};

// The most bytes that the header takes at the beginning of a file.
constexpr std::int64_t kMostNpyHeaderBytes = std::int64_t{64} << 10;

// Parses the beginning of a file of `file_bytes` bytes. Throws StorageError that says what is wrong with it, also if
// the file is shorter than its array.
NpyHeader parse_npy_header(std::string_view beginning, std::int64_t file_bytes);

// Makes an array of values of such a file, in the order of numpy's rows. `bytes` has `rows` rows in C order.
std::shared_ptr<arrow::Array> make_npy_values(const NpyHeader& header, const std::shared_ptr<arrow::Buffer>& bytes,
                                              std::int64_t rows, arrow::MemoryPool* pool);
// Returns the bytes of an array of Fortran's order in C's order.
std::shared_ptr<arrow::Buffer> to_c_order(const NpyHeader& header, const std::shared_ptr<arrow::Buffer>& bytes,
                                          arrow::MemoryPool* pool);

}  // namespace cadre::data
