// Reader of IDX files, the format of MNIST (http://yann.lecun.com/exdb/mnist/): a header with type and dimensions, then
// the elements, row by row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

namespace datasets {

// The elements of one file, all of them unsigned bytes.
struct IdxArray {
  std::vector<std::size_t> dimensions;     // {60000, 28, 28} for images, {60000} for labels
  std::span<const std::uint8_t> elements;  // as many as the product of the dimensions; the last one varies fastest
  std::shared_ptr<const void> memory;      // what `elements` lies in
};

// Opens a file, plain or gzipped (told by its content, not its name). It must hold unsigned bytes in `dimension_count`
// dimensions, at most 1 GiB of them, and nothing more. A plain file is mapped: that takes no time and no memory, and it
// must not be shortened while the array is in use (replacing it by another file is fine).
// Throws cadre::NotFound where there is no file, cadre::StorageError that names file, expected and actual content where
// it is cut, too long or something else.
IdxArray read_idx(const std::filesystem::path& file, std::size_t dimension_count);

}  // namespace datasets
