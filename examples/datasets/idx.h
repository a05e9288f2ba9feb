// Reader of IDX files, the format of MNIST (http://yann.lecun.com/exdb/mnist/): a header with type and dimensions, then
// the elements, row by row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <vector>

namespace datasets {

// The elements of one file, all of them unsigned bytes.
struct IdxArray {
  std::vector<std::size_t> dimensions;  // {60000, 28, 28} for images, {60000} for labels
  std::vector<std::uint8_t> bytes;      // as many as the product of the dimensions; the last dimension varies fastest
};

// Reads a whole file, plain or gzipped (told by its content, not its name). It must hold unsigned bytes in
// `dimension_count` dimensions, at most 1 GiB of them, and nothing more. Throws cadre::NotFound where there is no file,
// cadre::StorageError that names file, expected and actual content where it is cut, too long or something else.
IdxArray read_idx(const std::filesystem::path& file, std::size_t dimension_count);

}  // namespace datasets
