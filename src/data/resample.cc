#include "data/resample.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace cadre::data {
namespace {

constexpr int kFractionBits = 32 - 8 - 2;

// The weights of the source's pixels for each pixel of the result, in one direction.
struct Weights {
  std::int64_t most = 0;  // of one pixel
  std::vector<std::int64_t> begins = {};
  std::vector<std::int64_t> counts = {};
  std::vector<std::int32_t> weights = {};  // `most` for each pixel, in 2^-kFractionBits
};

Weights bilinear_weights(std::int64_t from, std::int64_t to) {
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  const double support = std::max(scale, 1.0);
  Weights all{.most = static_cast<std::int64_t>(std::ceil(support)) * 2 + 1};
  all.weights.resize(static_cast<std::size_t>(to * all.most));
  std::vector<double> exact(static_cast<std::size_t>(all.most));
  for (std::int64_t pixel = 0; pixel < to; ++pixel) {
    const double center = (static_cast<double>(pixel) + 0.5) * scale;
    const std::int64_t begin = std::max<std::int64_t>(static_cast<std::int64_t>(center - support + 0.5), 0);
    const std::int64_t end = std::min(static_cast<std::int64_t>(center + support + 0.5), from);
    double sum = 0;
    for (std::int64_t i = 0; i < end - begin; ++i) {
      const double distance = std::abs((static_cast<double>(i + begin) - center + 0.5) * (1.0 / support));
      sum += exact[static_cast<std::size_t>(i)] = std::max(1.0 - distance, 0.0);
    }
    for (std::int64_t i = 0; i < end - begin; ++i) {
      const double weight = exact[static_cast<std::size_t>(i)] / (sum != 0 ? sum : 1.0);
      all.weights[static_cast<std::size_t>(pixel * all.most + i)] =
          static_cast<std::int32_t>(0.5 + weight * (1 << kFractionBits));
    }
    all.begins.push_back(begin);
    all.counts.push_back(end - begin);
  }
  return all;
}

std::uint8_t to_byte(std::int32_t sum) { return static_cast<std::uint8_t>(std::clamp(sum >> kFractionBits, 0, 255)); }

// Resizes each row of `height` rows.
template <int kChannels>
std::vector<std::uint8_t> resample_rows(const std::uint8_t* pixels, std::int64_t row_bytes, std::int64_t height,
                                        const Weights& all) {
  const std::int64_t to = std::ssize(all.begins);
  std::vector<std::uint8_t> result(static_cast<std::size_t>(height * to * kChannels));
  std::uint8_t* out = result.data();
  for (std::int64_t row = 0; row < height; ++row) {
    const std::uint8_t* const in = pixels + row * row_bytes;
    for (std::int64_t pixel = 0; pixel < to; ++pixel) {
      const std::int32_t* const weights = all.weights.data() + pixel * all.most;
      const std::uint8_t* from = in + all.begins[static_cast<std::size_t>(pixel)] * kChannels;
      std::int32_t sums[kChannels];
      std::fill_n(sums, kChannels, 1 << (kFractionBits - 1));
      for (std::int64_t i = 0; i < all.counts[static_cast<std::size_t>(pixel)]; ++i, from += kChannels) {
        for (int channel = 0; channel < kChannels; ++channel) sums[channel] += from[channel] * weights[i];
      }
      for (int channel = 0; channel < kChannels; ++channel) *out++ = to_byte(sums[channel]);
    }
  }
  return result;
}

// Resizes each column of rows of `row_bytes`.
std::vector<std::uint8_t> resample_columns(const std::vector<std::uint8_t>& pixels, std::int64_t row_bytes,
                                           const Weights& all) {
  std::vector<std::uint8_t> result(all.begins.size() * static_cast<std::size_t>(row_bytes));
  std::vector<std::int32_t> sums(static_cast<std::size_t>(row_bytes));
  for (std::size_t row = 0; row < all.begins.size(); ++row) {
    std::ranges::fill(sums, 1 << (kFractionBits - 1));
    for (std::int64_t i = 0; i < all.counts[row]; ++i) {
      const std::int32_t weight = all.weights[row * static_cast<std::size_t>(all.most) + static_cast<std::size_t>(i)];
      const std::uint8_t* const in = pixels.data() + (all.begins[row] + i) * row_bytes;
      for (std::int64_t at = 0; at < row_bytes; ++at) sums[static_cast<std::size_t>(at)] += in[at] * weight;
    }
    std::ranges::transform(sums, result.begin() + static_cast<std::ptrdiff_t>(row) * row_bytes, to_byte);
  }
  return result;
}

// Resizes each row of a part of the picture.
std::vector<std::uint8_t> resample_rows(const Picture& picture, const ImageArea& area, const Weights& all) {
  const std::int64_t channels = channel_count(picture.header.channels);
  const std::int64_t row_bytes = picture.header.width * channels;
  const std::uint8_t* const pixels = picture.pixels.data() + area.top * row_bytes + area.left * channels;
  switch (channels) {
    case 1:
      return resample_rows<1>(pixels, row_bytes, area.height, all);
    case 2:
      return resample_rows<2>(pixels, row_bytes, area.height, all);
    case 3:
      return resample_rows<3>(pixels, row_bytes, area.height, all);
    default:
      return resample_rows<4>(pixels, row_bytes, area.height, all);
  }
}

Picture nearest(Picture picture, std::int64_t height, std::int64_t width) {
  const auto places = [](std::int64_t from, std::int64_t to) {
    const double scale = static_cast<double>(from) / static_cast<double>(to);
    std::vector<std::int64_t> all;
    double at = scale * 0.5;  // summed up as Pillow does
    for (std::int64_t i = 0; i < to; ++i, at += scale) all.push_back(std::min(static_cast<std::int64_t>(at), from - 1));
    return all;
  };
  const std::vector<std::int64_t> columns = places(picture.header.width, width);
  std::vector<std::uint8_t> pixels;
  for (const std::int64_t row : places(picture.header.height, height)) {
    for (const std::int64_t column : columns)
      pixels.push_back(picture.pixels[static_cast<std::size_t>(row * picture.header.width + column)]);
  }
  picture.pixels = std::move(pixels);
  return picture;
}

// Multiplies colours by the alpha, the last channel.
void multiply_by_alpha(Picture& picture) {
  const std::int64_t channels = channel_count(picture.header.channels);
  for (std::size_t pixel = 0; pixel < picture.pixels.size(); pixel += static_cast<std::size_t>(channels)) {
    std::uint8_t* const values = picture.pixels.data() + pixel;
    for (std::int64_t channel = 0; channel < channels - 1; ++channel) {
      const int product = values[channel] * values[channels - 1] + 128;
      values[channel] = static_cast<std::uint8_t>(((product >> 8) + product) >> 8);
    }
  }
}

void divide_by_alpha(Picture& picture) {
  const std::int64_t channels = channel_count(picture.header.channels);
  for (std::size_t pixel = 0; pixel < picture.pixels.size(); pixel += static_cast<std::size_t>(channels)) {
    std::uint8_t* const values = picture.pixels.data() + pixel;
    const int alpha = values[channels - 1];
    if (alpha == 0 || alpha == 255) continue;
    for (std::int64_t channel = 0; channel < channels - 1; ++channel)
      values[channel] = static_cast<std::uint8_t>(std::min(255 * values[channel] / alpha, 255));
  }
}

}  // namespace

Picture resample(Picture picture, std::int64_t height, std::int64_t width) {
  const ImageArea whole{.height = picture.header.height, .width = picture.header.width};
  if (whole.height == height && whole.width == width) return picture;
  return resample_part(std::move(picture), whole, height, width);
}

Picture resample_part(Picture picture, const ImageArea& area, std::int64_t height, std::int64_t width) {
  PictureHeader& header = picture.header;
  const bool has_alpha = header.channels == Channels::rgba || header.channels == Channels::grey_alpha;
  const bool is_whole = area == ImageArea{.height = header.height, .width = header.width};
  const bool is_nearest = header.channels == Channels::palette || header.channels == Channels::one_bit;
  if (!is_whole && (has_alpha || is_nearest || area.width == width))
    return resample(part_of(picture, area), height, width);
  if (is_nearest) {
    picture = nearest(std::move(picture), height, width);
  } else {
    if (has_alpha) multiply_by_alpha(picture);
    if (area.width != width) {
      picture.pixels = resample_rows(picture, area, bilinear_weights(area.width, width));
      header.width = width;
    }
    if (area.height != height)
      picture.pixels = resample_columns(picture.pixels, width * channel_count(header.channels),
                                        bilinear_weights(area.height, height));
    if (has_alpha) divide_by_alpha(picture);
  }
  header.height = height;
  header.width = width;
  return picture;
}

Picture part_of(const Picture& picture, const ImageArea& area) {
  Picture part{.header = {.height = area.height, .width = area.width, .channels = picture.header.channels},
               .palette = picture.palette,
               .transparent = picture.transparent};
  const std::int64_t channels = channel_count(picture.header.channels);
  part.pixels.reserve(static_cast<std::size_t>(area.height * area.width * channels));
  for (std::int64_t row = area.top; row < area.top + area.height; ++row) {
    const auto begin = picture.pixels.begin() + (row * picture.header.width + area.left) * channels;
    part.pixels.insert(part.pixels.end(), begin, begin + area.width * channels);
  }
  return part;
}

}  // namespace cadre::data
