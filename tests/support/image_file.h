// JPEG and PNG files of made-up pixels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>  // before jpeglib.h, which needs it
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include <jpeglib.h>
#include <png.h>

namespace cadre::test_support {

// Returns smooth pixels, which differ by `seed`.
inline std::vector<std::uint8_t> smooth_pixels(int height, int width, int channels, int seed = 0) {
  std::vector<std::uint8_t> pixels;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      for (int channel = 0; channel < channels; ++channel)
        pixels.push_back(static_cast<std::uint8_t>((y * 3 + x * (channel + 1) + seed * 17) % 256));
    }
  }
  return pixels;
}

// Returns a PNG file of one of libpng's simple formats.
inline std::string png_in(png_uint_32 format, const void* pixels, int height, int width) {
  png_image image = {};
  image.version = PNG_IMAGE_VERSION;
  image.height = static_cast<png_uint_32>(height);
  image.width = static_cast<png_uint_32>(width);
  image.format = format;
  png_alloc_size_t size = 0;
  if (png_image_write_to_memory(&image, nullptr, &size, 0, pixels, 0, nullptr) == 0)
    throw std::runtime_error(image.message);
  std::string bytes(size, 0);
  if (png_image_write_to_memory(&image, bytes.data(), &size, 0, pixels, 0, nullptr) == 0)
    throw std::runtime_error(image.message);
  bytes.resize(size);
  return bytes;
}

// Returns a PNG file, with 1 to 4 channels as grey, grey and alpha, RGB, RGBA.
inline std::string png_of(const std::vector<std::uint8_t>& pixels, int height, int width, int channels) {
  constexpr png_uint_32 kFormats[] = {PNG_FORMAT_GRAY, PNG_FORMAT_GA, PNG_FORMAT_RGB, PNG_FORMAT_RGBA};
  return png_in(kFormats[channels - 1], pixels.data(), height, width);
}

// Returns a PNG file in grey of 16 bits.
inline std::string deep_grey_png_of(const std::vector<std::uint16_t>& pixels, int height, int width) {
  return png_in(PNG_FORMAT_LINEAR_Y, pixels.data(), height, width);
}

// Returns a JPEG file with 1, 3 or 4 channels as grey, RGB, CMYK.
inline std::string jpeg_of(std::vector<std::uint8_t> pixels, int height, int width, int channels,
                           bool is_progressive = false) {
  jpeg_compress_struct image = {};
  jpeg_error_mgr errors = {};
  image.err = jpeg_std_error(&errors);
  jpeg_create_compress(&image);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&image, &bytes, &size);
  image.image_height = static_cast<JDIMENSION>(height);
  image.image_width = static_cast<JDIMENSION>(width);
  image.input_components = channels;
  image.in_color_space = channels == 1 ? JCS_GRAYSCALE : channels == 3 ? JCS_RGB : JCS_CMYK;
  jpeg_set_defaults(&image);
  if (is_progressive) jpeg_simple_progression(&image);
  jpeg_start_compress(&image, TRUE);
  for (int row = 0; row < height; ++row) {
    JSAMPROW at = pixels.data() + static_cast<std::ptrdiff_t>(row) * width * channels;
    jpeg_write_scanlines(&image, &at, 1);
  }
  jpeg_finish_compress(&image);
  std::string file(reinterpret_cast<const char*>(bytes), size);
  jpeg_destroy_compress(&image);
  std::free(bytes);
  return file;
}

}  // namespace cadre::test_support
