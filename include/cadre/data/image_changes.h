/// \file
/// Changes of decoded images: size, part, orientation, colours. Pixels are those of Pillow 13, and so of torchvision's
/// transforms of Pillow's images. cadre/data/image_transforms.h does these to the images of batches, also at random.
///
/// Threads: any.
#pragma once

#include <cstdint>

#include "cadre/data/image.h"

namespace cadre::data {

/// A part of an image, in pixels.
struct ImageArea {
  std::int64_t top = 0;                               ///< its first row
  std::int64_t left = 0;                              ///< its first column
  std::int64_t height = 0;                            ///< above 0
  std::int64_t width = 0;                             ///< above 0
  bool operator==(const ImageArea&) const = default;  ///< compares all members
};

/// Returns the image in another size, by Pillow's bilinear filter; see DecodeImageOptions::size. Throws InvalidArgument
/// for a size that is not from 1 to 65500.
Image resize(Image image, const ImageSize& size);
/// Returns a part of the image; pixels outside of the image are `fill`. Throws InvalidArgument for an empty part.
Image crop(const Image& image, const ImageArea& area, std::uint8_t fill = 0);
/// Returns the part in the middle.
Image center_crop(const Image& image, const ImageSize& size);
/// Returns a part of the image, which lies within it, in another size: crop and resize in one step.
Image resized_crop(Image image, const ImageArea& area, const ImageSize& size);
/// Returns the image with left and right exchanged.
Image horizontal_flip(Image image);
/// Returns the image with top and bottom exchanged.
Image vertical_flip(Image image);
/// Returns the image turned counter-clockwise about its middle, by the nearest pixels; pixels outside of it are `fill`.
Image rotate(const Image& image, double degrees, std::uint8_t fill = 0);
/// Returns the image with its brightness multiplied by a factor, 0 or more. It has one channel or three, here and
/// below; InvalidArgument otherwise.
Image adjust_brightness(Image image, double factor);
/// Returns the image with its differences to its mean grey multiplied by a factor, 0 or more.
Image adjust_contrast(Image image, double factor);
/// Returns the image with its differences to grey multiplied by a factor, 0 or more.
Image adjust_saturation(Image image, double factor);
/// Returns the image with its hues turned by a part of the colour circle, -0.5 to 0.5.
Image adjust_hue(Image image, double shift);

}  // namespace cadre::data
