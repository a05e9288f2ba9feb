/// \file
/// Decodes JPEG and PNG files into arrays of numbers, and resizes and converts them as Pillow does. read_images
/// (cadre/data/read.h) reads folders of images; these functions are for bytes that a dataset has in a column.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "cadre/data/batch.h"
#include "cadre/error.h"

namespace cadre::data {

/// Channels of a decoded image.
enum class ImageMode {
  /// As in the file: grey, grey with alpha, RGB or RGBA. Images with a palette, CMYK images and grey ones of 16 bits
  /// need another mode.
  stored,
  grey,  ///< one channel, 0.299 red + 0.587 green + 0.114 blue: Pillow's mode "L"
  rgb,   ///< three channels, without alpha: Pillow's mode "RGB"
  rgba,  ///< four channels, with an alpha of 255 for images without one: Pillow's mode "RGBA"
};

/// Height and width of images, in pixels: both from 1 to 65500, or both 0, which means each image's own.
struct ImageSize {
  std::int64_t height = 0;                            ///< 0 or 1 to 65500
  std::int64_t width = 0;                             ///< 0 or 1 to 65500
  bool operator==(const ImageSize&) const = default;  ///< compares both
};

/// Options of decode_image and decode_images.
struct DecodeImageOptions {
  /// Size of the result. Images of another size are resized before their mode is changed: with Pillow's bilinear
  /// filter, which averages over all pixels when it makes an image smaller, or with its nearest-neighbour filter for
  /// images with a palette or one bit per pixel. Default: each image's own size.
  ImageSize size = {};
  ImageMode mode = ImageMode::stored;  ///< see ImageMode
};

/// A decoded image.
struct Image {
  std::int64_t height = 0;                        ///< pixels
  std::int64_t width = 0;                         ///< pixels
  std::int64_t channels = 0;                      ///< 1 to 4; see ImageMode
  std::vector<std::uint8_t> pixels = {};          ///< rows from the top, pixels from the left, channels: 0 to 255
  bool operator==(const Image&) const = default;  ///< compares all members
  /// Returns {height, width, channels}, or {height, width} for one channel.
  std::vector<std::int64_t> shape() const;
};

/// Returns an image from the bytes of a JPEG or PNG file. Its orientation, colour profile and gamma are not applied, as
/// in Pillow; 16 bits per channel become the upper 8, also in grey images, whose values above 255 Pillow would cut off.
/// Throws StorageError that says what is wrong with the bytes: they end early, are damaged, of another format, or an
/// image of more than 178,956,970 pixels (Pillow's limit), for which no memory is allocated; InvalidArgument for
/// invalid options, and if the image has a palette, CMYK or grey of 16 bits and the mode is ImageMode::stored. May be
/// called in any thread.
Image decode_image(std::string_view bytes, const DecodeImageOptions& options = {});

/// Returns the images of a column of bytes, as a column of tensors of uint8 with the shape of Image::shape(). Throws
/// the errors of decode_image, with the row, and InvalidArgument if the column has other values than bytes, or nulls,
/// or if its images have different shapes: then give a size and a mode. For use in a function of batches:
///
///     Batch decode(const Batch& batch) {
///       return batch.with("image", decode_images(batch, "bytes", {.size = {224, 224}, .mode = ImageMode::rgb}));
///     }
Column decode_images(const Batch& batch, std::string_view column, const DecodeImageOptions& options = {});

}  // namespace cadre::data
