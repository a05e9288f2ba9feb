// An image as its file stores it, before it is resized and its mode is changed.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace cadre::data {

// The meaning of a picture's channels; Pillow's names are L, LA, RGB, RGBA, P, 1 and CMYK.
enum class Channels { grey, grey_alpha, rgb, rgba, palette, one_bit, cmyk };

// Properties of a picture that its header has.
struct PictureHeader {
  std::int64_t height = 0;
  std::int64_t width = 0;
  Channels channels = Channels::grey;
  bool is_deep_grey = false;  // grey of 16 bits, of which the picture has the upper 8
};

// A picture with 8 bits per channel.
struct Picture {
  PictureHeader header = {};
  std::vector<std::uint8_t> pixels = {};                        // rows from the top; a byte for each channel
  std::vector<std::array<std::uint8_t, 4>> palette = {};        // red, green, blue, alpha
  std::optional<std::array<std::uint8_t, 3>> transparent = {};  // colour of pixels that are transparent, grey as three
};

// Returns the number of bytes of a pixel.
constexpr std::int64_t channel_count(Channels channels) {
  switch (channels) {
    case Channels::grey:
    case Channels::palette:
    case Channels::one_bit:
      return 1;
    case Channels::grey_alpha:
      return 2;
    case Channels::rgb:
      return 3;
    case Channels::rgba:
    case Channels::cmyk:
      break;
  }
  return 4;
}

// Decodes the bytes of one image. All functions throw StorageError that says what is wrong with the bytes.
class PictureDecoder {
 public:
  virtual ~PictureDecoder() = default;
  virtual const PictureHeader& header() const = 0;  // read by the constructor
  // One of these is called, once. The second one decodes the pixels only, into as many bytes as the picture has.
  virtual Picture decode() = 0;
  virtual void decode_pixels(std::span<std::uint8_t> pixels) = 0;
};

bool is_jpeg(std::string_view bytes);  // by their beginning
bool is_png(std::string_view bytes);
// The bytes must outlive the decoder. Throw if the header is damaged or has more pixels than the limit.
std::unique_ptr<PictureDecoder> make_jpeg_decoder(std::string_view bytes);
std::unique_ptr<PictureDecoder> make_png_decoder(std::string_view bytes);
// Chooses one of these.
std::unique_ptr<PictureDecoder> make_picture_decoder(std::string_view bytes);

// Throws StorageError for an image of more pixels than Pillow reads, or without any.
void require_usual_size(std::int64_t height, std::int64_t width);
// Throws StorageError if the header has more pixels than a file of so many bytes can have. Called before memory is
// taken for them. `pixels_per_byte`: those of the format's best compression.
void require_enough_bytes(const PictureHeader& header, std::size_t bytes, std::int64_t pixels_per_byte);

}  // namespace cadre::data
