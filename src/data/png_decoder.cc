// PNG images, by libpng.
#include <png.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "cadre/error.h"
#include "data/picture.h"

namespace cadre::data {
namespace {

constexpr const char* kEndsEarly = "ends early";

// libpng reports errors by a call that must not return. Functions that are left by longjmp have no objects with
// destructors.
struct PngState {
  png_structp png = nullptr;
  png_infop info = nullptr;
  const char* bytes = nullptr;
  std::size_t left = 0;
  char message[200] = "";
};

[[noreturn]] void leave_png(png_structp png, png_const_charp message) {
  auto* const state = static_cast<PngState*>(png_get_error_ptr(png));
  std::strncpy(state->message, message, sizeof state->message - 1);
  png_longjmp(png, 1);
}

void ignore_png_warning(png_structp /*png*/, png_const_charp /*message*/) {}

void take_png_bytes(png_structp png, png_bytep to, std::size_t count) {
  auto* const state = static_cast<PngState*>(png_get_io_ptr(png));
  if (count > state->left) leave_png(png, kEndsEarly);
  std::memcpy(to, state->bytes, count);
  state->bytes += count;
  state->left -= count;
}

// Returns false on an error, like the next function.
bool begin_png(PngState& state) {
  state.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &state, leave_png, ignore_png_warning);
  if (state.png == nullptr) return false;
  if (setjmp(png_jmpbuf(state.png)) != 0) return false;
  state.info = png_create_info_struct(state.png);
  if (state.info == nullptr) png_error(state.png, "out of memory");
  png_set_read_fn(state.png, &state, take_png_bytes);
  png_read_info(state.png, state.info);
  return true;
}

// `rows`: the beginnings of all rows.
bool read_png_rows(PngState& state, png_bytepp rows) {
  if (setjmp(png_jmpbuf(state.png)) != 0) return false;
  png_read_image(state.png, rows);
  png_read_end(state.png, nullptr);
  return true;
}

// Sets the transformations to 8 bits per channel, and returns the bytes of a row; 0 on an error.
std::size_t set_png_transformations(PngState& state) {
  if (setjmp(png_jmpbuf(state.png)) != 0) return 0;
  png_set_packing(state.png);
  png_set_strip_16(state.png);
  if (png_get_color_type(state.png, state.info) == PNG_COLOR_TYPE_GRAY) png_set_expand_gray_1_2_4_to_8(state.png);
  png_set_interlace_handling(state.png);
  png_read_update_info(state.png, state.info);
  return png_get_rowbytes(state.png, state.info);
}

class PngDecoder final : public PictureDecoder {
 public:
  explicit PngDecoder(std::string_view bytes) {
    state_.bytes = bytes.data();
    state_.left = bytes.size();
    try {
      read_header();
      // Deflate makes at most 1032 bytes of one.
      require_enough_bytes(header_, bytes.size(), 1032 * std::max(8 / bit_depth_, 1));
    } catch (...) {
      png_destroy_read_struct(&state_.png, &state_.info, nullptr);
      throw;
    }
  }
  ~PngDecoder() override { png_destroy_read_struct(&state_.png, &state_.info, nullptr); }
  PngDecoder(const PngDecoder&) = delete;
  PngDecoder& operator=(const PngDecoder&) = delete;

  const PictureHeader& header() const override { return header_; }

  Picture decode() override {
    Picture picture{.header = header_};
    read_palette(picture);
    read_transparent_colour(picture);
    picture.pixels.resize(static_cast<std::size_t>(header_.height * header_.width * channel_count(header_.channels)));
    decode_pixels(picture.pixels);
    return picture;
  }
  void decode_pixels(std::span<std::uint8_t> pixels) override {
    const std::size_t row_bytes = set_png_transformations(state_);
    if (row_bytes != static_cast<std::size_t>(header_.width * channel_count(header_.channels))) fail();
    std::vector<png_bytep> rows;
    for (std::int64_t row = 0; row < header_.height; ++row)
      rows.push_back(pixels.data() + static_cast<std::size_t>(row) * row_bytes);
    if (!read_png_rows(state_, rows.data())) fail();
  }

 private:
  void read_header() {
    if (!begin_png(state_)) fail();
    header_ = {.height = png_get_image_height(state_.png, state_.info),
               .width = png_get_image_width(state_.png, state_.info)};
    require_usual_size(header_.height, header_.width);
    bit_depth_ = png_get_bit_depth(state_.png, state_.info);
    switch (png_get_color_type(state_.png, state_.info)) {
      case PNG_COLOR_TYPE_GRAY:
        header_.is_deep_grey = bit_depth_ == 16;
        header_.channels = bit_depth_ == 1 ? Channels::one_bit : Channels::grey;
        break;
      case PNG_COLOR_TYPE_GRAY_ALPHA:
        header_.channels = Channels::grey_alpha;
        break;
      case PNG_COLOR_TYPE_PALETTE:
        header_.channels = Channels::palette;
        break;
      case PNG_COLOR_TYPE_RGB:
        header_.channels = Channels::rgb;
        break;
      default:
        header_.channels = Channels::rgba;
    }
  }

  void read_palette(Picture& picture) const {
    png_colorp colours = nullptr;
    int count = 0;
    if (png_get_PLTE(state_.png, state_.info, &colours, &count) == 0) return;
    for (int i = 0; i < count; ++i) picture.palette.push_back({colours[i].red, colours[i].green, colours[i].blue, 255});
    png_bytep alphas = nullptr;
    int alpha_count = 0;
    if (header_.channels != Channels::palette ||
        png_get_tRNS(state_.png, state_.info, &alphas, &alpha_count, nullptr) == 0 || alphas == nullptr)
      return;
    for (int i = 0; i < std::min(count, alpha_count); ++i) picture.palette[static_cast<std::size_t>(i)][3] = alphas[i];
  }

  void read_transparent_colour(Picture& picture) const {
    if (header_.channels != Channels::grey && header_.channels != Channels::one_bit &&
        header_.channels != Channels::rgb)
      return;
    png_color_16p colour = nullptr;
    int count = 0;
    if (bit_depth_ == 16 || png_get_tRNS(state_.png, state_.info, nullptr, &count, &colour) == 0 || colour == nullptr)
      return;
    const auto as_byte = [](png_uint_16 value) { return static_cast<std::uint8_t>(value); };
    const auto grey = static_cast<std::uint8_t>(colour->gray * (255 / ((1 << bit_depth_) - 1)));
    if (header_.channels == Channels::rgb) {
      picture.transparent = {as_byte(colour->red), as_byte(colour->green), as_byte(colour->blue)};
    } else {
      picture.transparent = {grey, grey, grey};
    }
  }

  [[noreturn]] void fail() const {
    if (std::strcmp(state_.message, kEndsEarly) == 0)
      throw StorageError("it is a PNG image that ends early: write it again, or leave it out");
    throw StorageError("it is a damaged PNG image (" + std::string(state_.message) +
                       "): write it again, or leave it out");
  }

  PngState state_;
  PictureHeader header_;
  int bit_depth_ = 8;
};

}  // namespace

bool is_png(std::string_view bytes) { return bytes.starts_with("\x89PNG\r\n\x1a\n"); }

std::unique_ptr<PictureDecoder> make_png_decoder(std::string_view bytes) { return std::make_unique<PngDecoder>(bytes); }

}  // namespace cadre::data
