#include "data/picture.h"

#include <fmt/format.h>

#include "cadre/error.h"

namespace cadre::data {

void require_usual_size(std::int64_t height, std::int64_t width) {
  constexpr std::int64_t kMostPixels = 178'956'970;  // Pillow's
  if (height < 1 || width < 1 || height > kMostPixels / width)
    throw StorageError(
        fmt::format("it is an image of {} x {} pixels, and images have from 1 to {}", width, height, kMostPixels));
}

void require_enough_bytes(const PictureHeader& header, std::size_t bytes, std::int64_t pixels_per_byte) {
  if (header.height * header.width > static_cast<std::int64_t>(bytes) * pixels_per_byte)
    throw StorageError(
        fmt::format("it has a header of an image of {} x {} pixels, and too few bytes for them ({}): it is "
                    "damaged; write it again, or leave it out",
                    header.width, header.height, bytes));
}

std::unique_ptr<PictureDecoder> make_picture_decoder(std::string_view bytes) {
  if (is_jpeg(bytes)) return make_jpeg_decoder(bytes);
  if (is_png(bytes)) return make_png_decoder(bytes);
  if (bytes.empty()) throw StorageError("it is empty: write it again, or leave it out");
  throw StorageError(
      "it is neither a JPEG nor a PNG image, which its first bytes would say: convert it to one of them, "
      "or leave it out");
}

}  // namespace cadre::data
