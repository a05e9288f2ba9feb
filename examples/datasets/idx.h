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
  std::shared_ptr<const void> memory;      // owner of the memory behind `elements`
};

// Opens a file, uncompressed or gzipped (detected from its content, not its name). It must contain unsigned bytes in
// `dimension_count` dimensions, at most 1 GiB, and nothing more. An uncompressed file is mapped, which takes no time
// and no memory; it must not be truncated while the array is in use (replacing it by another file is fine).
// Throws cadre::NotFound if there is no file, and cadre::StorageError, naming the file, its expected and its actual
// content, if it is truncated, too long or has another format.
IdxArray read_idx(const std::filesystem::path& file, std::size_t dimension_count);

}  // namespace datasets
