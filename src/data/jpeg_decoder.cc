// JPEG images, by libjpeg-turbo.
#include <cstddef>
#include <cstdio>  // before jpeglib.h, which needs it

#include <jpeglib.h>

#include <jerror.h>

#include <csetjmp>
#include <string>

#include "cadre/error.h"
#include "data/picture.h"

namespace cadre::data {
namespace {

// libjpeg reports errors by a call that must not return. Functions that are left by longjmp have no objects with
// destructors.
struct JpegState {
  jpeg_decompress_struct image = {};
  jpeg_error_mgr errors = {};
  std::jmp_buf failed = {};
  char message[JMSG_LENGTH_MAX] = "";
};

[[noreturn]] void leave(j_common_ptr image) {
  auto* const state = static_cast<JpegState*>(image->client_data);
  image->err->format_message(image, state->message);
  std::longjmp(state->failed, 1);
}

void be_silent(j_common_ptr /*image*/) {}
void ignore_warning(j_common_ptr /*image*/, int /*level*/) {}

boolean end_of_bytes(j_decompress_ptr image) {
  image->err->msg_code = JERR_INPUT_EOF;
  leave(reinterpret_cast<j_common_ptr>(image));
}

// Returns false on an error, like the next function.
bool begin_jpeg(JpegState& state, const unsigned char* bytes, unsigned long size) {
  state.image.err = jpeg_std_error(&state.errors);
  state.errors.error_exit = leave;
  state.errors.output_message = be_silent;
  state.errors.emit_message = ignore_warning;  // Pillow ignores them, too
  state.image.client_data = &state;
  if (setjmp(state.failed) != 0) return false;
  jpeg_create_decompress(&state.image);
  jpeg_mem_src(&state.image, bytes, size);
  state.image.src->fill_input_buffer = end_of_bytes;  // libjpeg would go on with grey pixels
  jpeg_read_header(&state.image, TRUE);
  return true;
}

// Fetches the memory of a later row, which is not in the cache where it is a part of a large batch, while this one is
// decoded.
void fetch_row_ahead(const jpeg_decompress_struct& image, const unsigned char* pixels, std::size_t row_bytes) {
  constexpr std::size_t kRowsAhead = 16;
  constexpr std::size_t kLineBytes = 64;
  const std::size_t row = image.output_scanline + kRowsAhead;
  if (row >= image.output_height) return;
  for (std::size_t at = 0; at < row_bytes; at += kLineBytes)
    __builtin_prefetch(pixels + row * row_bytes + at, /*rw=*/1, /*locality=*/2);
}

bool read_jpeg_rows(JpegState& state, J_COLOR_SPACE space, unsigned char* pixels, std::size_t row_bytes) {
  if (setjmp(state.failed) != 0) return false;
  state.image.out_color_space = space;
  jpeg_start_decompress(&state.image);
  while (state.image.output_scanline < state.image.output_height) {
    fetch_row_ahead(state.image, pixels, row_bytes);
    JSAMPROW row = pixels + state.image.output_scanline * row_bytes;
    jpeg_read_scanlines(&state.image, &row, 1);
  }
  jpeg_finish_decompress(&state.image);
  return true;
}

class JpegDecoder final : public PictureDecoder {
 public:
  explicit JpegDecoder(std::string_view bytes) {
    try {
      read_header(bytes);
    } catch (...) {
      jpeg_destroy_decompress(&state_.image);
      throw;
    }
  }
  ~JpegDecoder() override { jpeg_destroy_decompress(&state_.image); }
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;

  const PictureHeader& header() const override { return header_; }

  Picture decode() override {
    const std::int64_t bytes = header_.height * header_.width * channel_count(header_.channels);
    Picture picture{.header = header_, .pixels = std::vector<std::uint8_t>(bytes)};
    decode_pixels(picture.pixels);
    return picture;
  }
  void decode_pixels(std::span<std::uint8_t> pixels) override {
    const std::int64_t row_bytes = header_.width * channel_count(header_.channels);
    const J_COLOR_SPACE space = header_.channels == Channels::grey  ? JCS_GRAYSCALE
                                : header_.channels == Channels::rgb ? JCS_RGB
                                                                    : JCS_CMYK;
    if (!read_jpeg_rows(state_, space, pixels.data(), row_bytes)) fail();
    if (header_.channels == Channels::cmyk) {  // stored inverted, as Pillow assumes
      for (std::uint8_t& value : pixels) value = 255 - value;
    }
  }

 private:
  void read_header(std::string_view bytes) {
    if (!begin_jpeg(state_, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size())) fail();
    header_ = {.height = state_.image.image_height, .width = state_.image.image_width};
    require_usual_size(header_.height, header_.width);
    // A block of 8 x 8 values takes a bit at least, and a pixel has a value in one channel of four at least.
    constexpr std::int64_t kMostPixelsPerByte = 8 * 64 * 4;
    if (state_.image.arith_code == FALSE) require_enough_bytes(header_, bytes.size(), kMostPixelsPerByte);
    switch (state_.image.num_components) {
      case 1:
        header_.channels = Channels::grey;
        break;
      case 3:
        header_.channels = Channels::rgb;
        break;
      case 4:
        header_.channels = Channels::cmyk;
        break;
      default:
        throw StorageError("it is a JPEG image with " + std::to_string(state_.image.num_components) +
                           " channels, not with 1, 3 or 4: convert it");
    }
  }
  [[noreturn]] void fail() const {
    if (state_.errors.msg_code == JERR_INPUT_EOF)
      throw StorageError("it is a JPEG image that ends early: write it again, or leave it out");
    throw StorageError("it is a damaged JPEG image (" + std::string(state_.message) +
                       "): write it again, or leave it out");
  }

  JpegState state_;
  PictureHeader header_;
};

}  // namespace

bool is_jpeg(std::string_view bytes) { return bytes.starts_with("\xff\xd8\xff"); }

std::unique_ptr<PictureDecoder> make_jpeg_decoder(std::string_view bytes) {
  return std::make_unique<JpegDecoder>(bytes);
}

}  // namespace cadre::data
