#include "cadre/data/image_changes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numbers>
#include <utility>

#include "cadre/error.h"
#include "data/image_modes.h"
#include "data/picture.h"
#include "data/resample.h"

namespace cadre::data {
namespace {

Picture to_picture(Image image) {
  constexpr std::array kChannels = {Channels::grey, Channels::grey_alpha, Channels::rgb, Channels::rgba};
  if (image.channels < 1 || image.channels > 4 || image.height < 1 || image.width < 1 ||
      std::ssize(image.pixels) != image.height * image.width * image.channels)
    throw InvalidArgument(
        fmt::format("an image of {} x {} pixels with {} channels has {} bytes: give it 1 to 4 channels, and a byte for "
                    "each of them in each pixel",
                    image.width, image.height, image.channels, image.pixels.size()));
  return {.header = {.height = image.height,
                     .width = image.width,
                     .channels = kChannels[static_cast<std::size_t>(image.channels - 1)]},
          .pixels = std::move(image.pixels)};
}

Image to_image(Picture picture) {
  return {.height = picture.header.height,
          .width = picture.header.width,
          .channels = channel_count(picture.header.channels),
          .pixels = std::move(picture.pixels)};
}

void require_colours(const Image& image, const char* function) {
  if (image.channels != 1 && image.channels != 3)
    throw InvalidArgument(
        fmt::format("{}: the image has {} channels; it must have one or three: decode it with ImageMode::rgb", function,
                    image.channels));
}

void require_factor(double factor, const char* function) {
  if (!(factor >= 0) || !std::isfinite(factor))
    throw InvalidArgument(fmt::format("{}: the factor is {}; it must be 0 or more", function, factor));
}

// Mixes a value with another one, as Pillow's Image.blend does: a factor above 1 leaves it farther from that one.
std::uint8_t blend(std::uint8_t other, std::uint8_t value, float factor) {
  const float mixed = static_cast<float>(other) + factor * static_cast<float>(value - other);
  if (mixed <= 0) return 0;
  return mixed >= 255 ? 255 : static_cast<std::uint8_t>(mixed);
}

std::vector<std::uint8_t> grey_values(const Image& image) {
  if (image.channels == 1) return image.pixels;
  return with_mode(to_picture(image), ImageMode::grey).pixels;
}

bool lies_within(const ImageArea& area, const Image& image) {
  const auto fits = [](std::int64_t begin, std::int64_t length, std::int64_t whole) {
    return begin >= 0 && length >= 1 && length <= whole && begin <= whole - length;
  };
  return fits(area.top, area.height, image.height) && fits(area.left, area.width, image.width);
}

// Copies whole pixels of the source, which `from(row, column)` finds; null: the fill.
template <class From>
Image copy_pixels(const Image& image, std::int64_t height, std::int64_t width, std::uint8_t fill, From from) {
  Image result{.height = height, .width = width, .channels = image.channels};
  result.pixels.assign(static_cast<std::size_t>(height * width * image.channels), fill);
  std::uint8_t* out = result.pixels.data();
  for (std::int64_t row = 0; row < height; ++row) {
    for (std::int64_t column = 0; column < width; ++column, out += image.channels) {
      const auto [y, x] = from(row, column);
      if (y < 0 || y >= image.height || x < 0 || x >= image.width) continue;
      std::memcpy(out, image.pixels.data() + (y * image.width + x) * image.channels,
                  static_cast<std::size_t>(image.channels));
    }
  }
  return result;
}

using Place = std::pair<std::int64_t, std::int64_t>;  // row, column

template <int kChannels>
Image with_reversed_rows(Image image) {
  using Pixel = std::array<std::uint8_t, kChannels>;
  auto* const pixels = reinterpret_cast<Pixel*>(image.pixels.data());
  for (std::int64_t row = 0; row < image.height; ++row)
    std::reverse(pixels + row * image.width, pixels + (row + 1) * image.width);
  return image;
}

// Source of both conversions: Pillow's Convert.c.
std::array<std::uint8_t, 3> to_hsv(const std::uint8_t* rgb) {
  const auto [least, most] = std::minmax({rgb[0], rgb[1], rgb[2]});
  if (least == most) return {0, 0, most};
  const auto range = static_cast<float>(most - least);
  const float saturation = range / static_cast<float>(most);
  const float red = static_cast<float>(most - rgb[0]) / range;
  const float green = static_cast<float>(most - rgb[1]) / range;
  const float blue = static_cast<float>(most - rgb[2]) / range;
  float hue = 0;
  if (rgb[0] == most) {
    hue = blue - green;
  } else if (rgb[1] == most) {
    hue = static_cast<float>(2.0 + red - blue);
  } else {
    hue = static_cast<float>(4.0 + green - red);
  }
  hue = static_cast<float>(std::fmod(hue / 6.0 + 1.0, 1.0));
  const auto byte = [](double value) { return static_cast<std::uint8_t>(std::clamp(static_cast<int>(value), 0, 255)); };
  return {byte(hue * 255.0), byte(saturation * 255.0), most};
}

void from_hsv(const std::array<std::uint8_t, 3>& hsv, std::uint8_t* rgb) {
  const auto [hue, saturation, value] = hsv;
  if (saturation == 0) {
    std::fill_n(rgb, 3, value);
    return;
  }
  const float sixths = static_cast<float>(hue) * 6.0F / 255.0F;
  const auto whole = static_cast<int>(std::floor(sixths));
  const float rest = sixths - static_cast<float>(whole);
  const float part = static_cast<float>(saturation) / 255.0F;
  const auto light = static_cast<double>(value);
  const auto byte = [](double number) {
    return static_cast<std::uint8_t>(std::clamp(static_cast<int>(std::round(number)), 0, 255));
  };
  const std::uint8_t p = byte(light * (1.0 - part));
  const std::uint8_t q = byte(light * (1.0 - part * rest));
  const std::uint8_t t = byte(light * (1.0 - part * (1.0 - rest)));
  const std::array<std::array<std::uint8_t, 3>, 6> all = {
      {{value, t, p}, {q, value, p}, {p, value, t}, {p, q, value}, {t, p, value}, {value, p, q}}};
  std::ranges::copy(all[static_cast<std::size_t>(whole % 6)], rgb);
}

}  // namespace

Image resize(Image image, const ImageSize& size) {
  const ImageArea whole{.height = image.height, .width = image.width};
  return resized_crop(std::move(image), whole, size);
}

Image resized_crop(Image image, const ImageArea& area, const ImageSize& size) {
  if (size == ImageSize{})
    throw InvalidArgument("the size of images is {0, 0}; height and width must be from 1 to 65500");
  require_valid({.size = size});
  if (!lies_within(area, image))
    throw InvalidArgument(fmt::format(
        "resized_crop: the part of {} x {} pixels at row {}, column {} does not lie within the image of {} x "
        "{}: crop() fills what is outside",
        area.height, area.width, area.top, area.left, image.height, image.width));
  return to_image(resample_part(to_picture(std::move(image)), area, size.height, size.width));
}

Image crop(const Image& image, const ImageArea& area, std::uint8_t fill) {
  require_valid({.size = {area.height, area.width}});
  if (area.height == 0) throw InvalidArgument("crop: the part has no pixels; its height and width must be above 0");
  if (lies_within(area, image)) return to_image(part_of(to_picture(image), area));
  return copy_pixels(image, area.height, area.width, fill,
                     [&](std::int64_t row, std::int64_t column) { return Place(row + area.top, column + area.left); });
}

Image center_crop(const Image& image, const ImageSize& size) {
  // As torchvision: a smaller image is padded first, one more at the end; else the middle is rounded.
  const auto begin = [](std::int64_t own, std::int64_t wanted) {
    return wanted > own ? -((wanted - own) / 2)
                        : static_cast<std::int64_t>(std::nearbyint(static_cast<double>(own - wanted) / 2));
  };
  return crop(image, {.top = begin(image.height, size.height),
                      .left = begin(image.width, size.width),
                      .height = size.height,
                      .width = size.width});
}

Image horizontal_flip(Image image) {
  switch (image.channels) {
    case 1:
      return with_reversed_rows<1>(std::move(image));
    case 2:
      return with_reversed_rows<2>(std::move(image));
    case 3:
      return with_reversed_rows<3>(std::move(image));
    default:
      return with_reversed_rows<4>(std::move(image));
  }
}

Image vertical_flip(Image image) {
  const auto row = [&](std::int64_t number) { return image.pixels.begin() + number * image.width * image.channels; };
  for (std::int64_t above = 0, below = image.height - 1; above < below; ++above, --below)
    std::swap_ranges(row(above), row(above + 1), row(below));
  return image;
}

Image rotate(const Image& image, double degrees, std::uint8_t fill) {
  if (!std::isfinite(degrees))
    throw InvalidArgument(fmt::format("rotate: the angle is {}; it must be finite", degrees));
  const std::int64_t height = image.height;
  const std::int64_t width = image.width;
  double turn = std::fmod(degrees, 360);
  if (turn < 0) turn += 360;
  const auto place = [&](auto from) { return copy_pixels(image, height, width, fill, from); };
  if (turn == 0) return image;
  if (turn == 180) return vertical_flip(horizontal_flip(image));
  if (height == width && turn == 90)
    return place([&](std::int64_t row, std::int64_t column) { return Place(column, width - 1 - row); });
  if (height == width && turn == 270)
    return place([&](std::int64_t row, std::int64_t column) { return Place(height - 1 - column, row); });
  // Pillow's matrix, rounded as it is there, and its steps of 2^-16 of a pixel.
  const auto rounded = [](double number) { return std::round(number * 1e15) / 1e15; };
  const double radians = -turn * std::numbers::pi / 180;
  const double cosine = rounded(std::cos(radians));
  const double sine = rounded(std::sin(radians));
  const double x = static_cast<double>(width) / 2;
  const double y = static_cast<double>(height) / 2;
  const double from_x = cosine * -x + sine * -y + x;
  const double from_y = -sine * -x + cosine * -y + y;
  const auto fixed = [](double number) { return static_cast<std::int64_t>(std::floor(number * 65536 + 0.5)); };
  const std::int64_t first_x = fixed(from_x + cosine * 0.5 + sine * 0.5);
  const std::int64_t first_y = fixed(from_y - sine * 0.5 + cosine * 0.5);
  return place([&](std::int64_t row, std::int64_t column) {
    return Place((first_y + row * fixed(cosine) + column * fixed(-sine)) >> 16,
                 (first_x + row * fixed(sine) + column * fixed(cosine)) >> 16);
  });
}

Image adjust_brightness(Image image, double factor) {
  require_colours(image, "adjust_brightness");
  require_factor(factor, "adjust_brightness");
  for (std::uint8_t& value : image.pixels) value = blend(0, value, static_cast<float>(factor));
  return image;
}

Image adjust_contrast(Image image, double factor) {
  require_colours(image, "adjust_contrast");
  require_factor(factor, "adjust_contrast");
  double sum = 0;
  const std::vector<std::uint8_t> grey = grey_values(image);
  for (const std::uint8_t value : grey) sum += value;
  const auto mean = static_cast<std::uint8_t>(sum / static_cast<double>(grey.size()) + 0.5);
  for (std::uint8_t& value : image.pixels) value = blend(mean, value, static_cast<float>(factor));
  return image;
}

Image adjust_saturation(Image image, double factor) {
  require_colours(image, "adjust_saturation");
  require_factor(factor, "adjust_saturation");
  if (image.channels == 1) return image;
  const std::vector<std::uint8_t> grey = grey_values(image);
  for (std::size_t at = 0; at < image.pixels.size(); ++at)
    image.pixels[at] = blend(grey[at / 3], image.pixels[at], static_cast<float>(factor));
  return image;
}

Image adjust_hue(Image image, double shift) {
  require_colours(image, "adjust_hue");
  if (!(shift >= -0.5 && shift <= 0.5))
    throw InvalidArgument(fmt::format("adjust_hue: the shift is {}; it must be from -0.5 to 0.5", shift));
  if (image.channels == 1) return image;
  const auto turn = static_cast<std::uint8_t>(static_cast<int>(shift * 255));
  for (std::size_t at = 0; at < image.pixels.size(); at += 3) {
    auto hsv = to_hsv(image.pixels.data() + at);
    hsv[0] = static_cast<std::uint8_t>(hsv[0] + turn);
    from_hsv(hsv, image.pixels.data() + at);
  }
  return image;
}

}  // namespace cadre::data
