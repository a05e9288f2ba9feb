// Pictures as PNG files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <vector>

namespace pictures {

// Grey pixels from 0 (black) to 255 (white).
struct GreyPicture {
  std::size_t width = 0;                  // 1 to 16,384
  std::size_t height = 0;                 // 1 to 16,384
  std::vector<std::uint8_t> pixels = {};  // width * height values, row by row from the top left
};

// Writes an 8-bit greyscale PNG (https://www.w3.org/TR/png-3/). Replaces an existing file. Throws
// cadre::InvalidArgument if the picture's sizes are not as above, cadre::StorageError if the file cannot be written; a
// partly written file may then be left.
void write_png(const std::filesystem::path& file, const GreyPicture& picture);

}  // namespace pictures
