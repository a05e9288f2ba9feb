#include "data/image_modes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "cadre/error.h"

namespace cadre::data {
namespace {

constexpr std::int64_t kMostWidth = 65500;

using Colour = std::array<std::uint8_t, 4>;  // red, green, blue, alpha

std::uint8_t grey_of(const Colour& colour) {
  constexpr std::int32_t kHalf = 0x8000;
  return static_cast<std::uint8_t>((colour[0] * 19595 + colour[1] * 38470 + colour[2] * 7471 + kHalf) >> 16);
}

std::uint8_t without_ink(int ink, int light) {
  const int product = ink * light + 128;
  return static_cast<std::uint8_t>(std::clamp(light - (((product >> 8) + product) >> 8), 0, 255));
}

// Returns the colour of a pixel.
Colour colour_of(const Picture& picture, const std::uint8_t* pixel) {
  switch (picture.header.channels) {
    case Channels::grey:
    case Channels::one_bit:
      return {pixel[0], pixel[0], pixel[0], 255};
    case Channels::grey_alpha:
      return {pixel[0], pixel[0], pixel[0], pixel[1]};
    case Channels::rgb:
      return {pixel[0], pixel[1], pixel[2], 255};
    case Channels::rgba:
      return {pixel[0], pixel[1], pixel[2], pixel[3]};
    case Channels::palette:
      return pixel[0] < picture.palette.size() ? picture.palette[pixel[0]] : Colour{0, 0, 0, 255};
    case Channels::cmyk:
      break;
  }
  const int light = 255 - pixel[3];
  return {without_ink(pixel[0], light), without_ink(pixel[1], light), without_ink(pixel[2], light), 255};
}

}  // namespace

void require_valid(const DecodeImageOptions& options) {
  const auto& [height, width] = options.size;
  const bool is_own = height == 0 && width == 0;
  const bool fits = height >= 1 && height <= kMostWidth && width >= 1 && width <= kMostWidth;
  if (!is_own && !fits)
    throw InvalidArgument(fmt::format("the size of images is {{{}, {}}}; height and width must be from 1 to {}", height,
                                      width, kMostWidth));
}

std::optional<std::vector<std::int64_t>> shape_of(const DecodeImageOptions& options) {
  if (options.size == ImageSize{} || options.mode == ImageMode::stored) return std::nullopt;
  return shape_of({}, options);
}

std::vector<std::int64_t> shape_of(const PictureHeader& header, const DecodeImageOptions& options) {
  const bool is_own = options.size == ImageSize{};
  std::vector<std::int64_t> shape{is_own ? header.height : options.size.height,
                                  is_own ? header.width : options.size.width};
  const std::int64_t channels = channel_count(mode_of(header, options.mode));
  if (channels > 1) shape.push_back(channels);
  return shape;
}

Channels mode_of(const PictureHeader& header, ImageMode mode) {
  switch (mode) {
    case ImageMode::grey:
      return Channels::grey;
    case ImageMode::rgb:
      return Channels::rgb;
    case ImageMode::rgba:
      return Channels::rgba;
    case ImageMode::stored:
      break;
  }
  if (header.is_deep_grey)
    throw InvalidArgument(
        "the image is grey of 16 bits, whose values 8 bits cannot keep: give a mode, such as ImageMode::grey, for the "
        "upper 8 bits, or read its file with read_binary_files");
  if (header.channels == Channels::palette)
    throw InvalidArgument("the image has a palette: give a mode, such as ImageMode::rgb");
  if (header.channels == Channels::cmyk)
    throw InvalidArgument("the image has the colours of a printer (CMYK): give a mode, such as ImageMode::rgb");
  return header.channels == Channels::one_bit ? Channels::grey : header.channels;
}

Picture with_mode(Picture picture, ImageMode mode) {
  const Channels to = mode_of(picture.header, mode);
  if (to == picture.header.channels) return picture;
  if (picture.header.channels == Channels::one_bit && to == Channels::grey) {
    picture.header.channels = to;
    return picture;
  }
  const auto step = static_cast<std::size_t>(channel_count(picture.header.channels));
  Picture result{.header = picture.header};
  result.header.channels = to;
  result.pixels.reserve(picture.pixels.size() / step * static_cast<std::size_t>(channel_count(to)));
  for (std::size_t at = 0; at < picture.pixels.size(); at += step) {
    const Colour colour = colour_of(picture, picture.pixels.data() + at);
    if (to == Channels::grey) {
      const bool is_grey = step <= 2 && picture.header.channels != Channels::palette;
      result.pixels.push_back(is_grey ? colour[0] : grey_of(colour));
      continue;
    }
    result.pixels.insert(result.pixels.end(), colour.begin(), colour.begin() + 3);
    if (to == Channels::rgb) continue;
    const bool is_transparent =
        picture.transparent && std::equal(picture.transparent->begin(), picture.transparent->end(), colour.begin());
    result.pixels.push_back(is_transparent ? std::uint8_t{0} : colour[3]);
  }
  return result;
}

}  // namespace cadre::data
