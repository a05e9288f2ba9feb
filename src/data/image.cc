#include "cadre/data/image.h"

#include <arrow/array.h>
#include <arrow/buffer.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <utility>

#include "data/image_modes.h"
#include "data/image_place.h"
#include "data/picture.h"
#include "data/resample.h"

namespace cadre::data {

std::vector<std::int64_t> Image::shape() const {
  if (channels == 1) return {height, width};
  return {height, width, channels};
}

namespace {

Picture convert_picture(Picture picture, const DecodeImageOptions& options) {
  if (options.size != ImageSize{}) picture = resample(std::move(picture), options.size.height, options.size.width);
  return with_mode(std::move(picture), options.mode);
}

}  // namespace

void decode_into(PictureDecoder& decoder, const DecodeImageOptions& options, std::span<std::uint8_t> pixels) {
  const PictureHeader& header = decoder.header();
  const bool has_size = options.size == ImageSize{} || options.size == ImageSize{header.height, header.width};
  const bool has_mode = header.channels != Channels::palette && header.channels != Channels::cmyk &&
                        channel_count(mode_of(header, options.mode)) == channel_count(header.channels);
  if (has_size && has_mode) return decoder.decode_pixels(pixels);
  std::ranges::copy(convert_picture(decoder.decode(), options).pixels, pixels.begin());
}

Image decode_image(std::string_view bytes, const DecodeImageOptions& options) {
  require_valid(options);
  const auto decoder = make_picture_decoder(bytes);
  mode_of(decoder->header(), options.mode);  // throws before the pixels are decoded
  Picture picture = convert_picture(decoder->decode(), options);
  const PictureHeader& header = picture.header;
  return {.height = header.height,
          .width = header.width,
          .channels = channel_count(header.channels),
          .pixels = std::move(picture.pixels)};
}

Column decode_images(const Batch& batch, std::string_view column, const DecodeImageOptions& options) {
  const std::vector<std::string_view> all = batch.texts(column);
  std::vector<std::uint8_t> pixels;
  std::vector<std::int64_t> shape;
  for (std::size_t row = 0; row < all.size(); ++row) {
    const auto where = [&] {
      return fmt::format("cannot decode {}: ", place_of_image(batch, column, static_cast<std::int64_t>(row), ""));
    };
    Image image;
    try {
      image = decode_image(all[row], options);
    } catch (const StorageError& error) {
      throw StorageError(where() + error.what());
    } catch (const InvalidArgument& error) {
      throw InvalidArgument(where() + error.what());
    }
    if (row == 0) shape = image.shape();
    if (image.shape() != shape)
      throw InvalidArgument(
          fmt::format("{}it has the shape {}, and row 0 has {}: give a size and a mode, or decode one "
                      "row at a time with decode_image",
                      where(), fmt::join(image.shape(), " x "), fmt::join(shape, " x ")));
    pixels.insert(pixels.end(), image.pixels.begin(), image.pixels.end());
  }
  if (all.empty()) shape = shape_of(options).value_or(std::vector<std::int64_t>{1, 1, 1});
  return {std::move(pixels), shape};
}

}  // namespace cadre::data
