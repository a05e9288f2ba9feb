#include "pictures/png.h"

#include <zlib.h>

#include <fstream>
#include <string>
#include <string_view>

#include "cadre/error.h"

namespace pictures {
namespace {

using namespace std::string_view_literals;

constexpr std::size_t max_side = 16'384;
constexpr std::string_view signature = "\x89PNG\r\n\x1a\n"sv;

void check(const GreyPicture& picture) {
  const auto fits = [](std::size_t side) { return side >= 1 && side <= max_side; };
  if (fits(picture.width) && fits(picture.height) && picture.pixels.size() == picture.width * picture.height) return;
  throw cadre::InvalidArgument("a picture of " + std::to_string(picture.width) + " x " +
                               std::to_string(picture.height) + " pixels cannot be written with " +
                               std::to_string(picture.pixels.size()) + " of them; sides are 1 to " +
                               std::to_string(max_side));
}

std::string big_endian(std::size_t number) {
  std::string bytes;
  for (const int shift : {24, 16, 8, 0}) bytes += static_cast<char>(number >> shift & 0xff);
  return bytes;
}

std::string chunk(std::string_view type, std::string_view data) {
  const std::string checked = std::string(type) + std::string(data);
  const auto checksum = crc32_z(0, reinterpret_cast<const Bytef*>(checked.data()), checked.size());
  return big_endian(data.size()) + checked + big_endian(checksum);
}

std::string header(const GreyPicture& picture) {
  constexpr std::string_view eight_bits_of_grey = "\x08\x00"sv;
  constexpr std::string_view only_methods_and_not_interlaced = "\x00\x00\x00"sv;
  return big_endian(picture.width) + big_endian(picture.height) + std::string(eight_bits_of_grey) +
         std::string(only_methods_and_not_interlaced);
}

// Returns the pixels row by row. Each row begins with its filter type: 0, none.
std::string rows(const GreyPicture& picture) {
  std::string bytes;
  bytes.reserve((picture.width + 1) * picture.height);
  for (std::size_t row = 0; row < picture.height; ++row) {
    const auto first = picture.pixels.begin() + static_cast<std::ptrdiff_t>(row * picture.width);
    bytes += '\0';
    bytes.append(first, first + static_cast<std::ptrdiff_t>(picture.width));
  }
  return bytes;
}

std::string compressed(std::string_view bytes) {
  uLongf size = compressBound(bytes.size());
  std::string result(size, '\0');
  const int code = compress(reinterpret_cast<Bytef*>(result.data()), &size,
                            reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
  if (code != Z_OK) throw cadre::StorageError("a picture could not be compressed: " + std::string(zError(code)));
  result.resize(size);
  return result;
}

}  // namespace

void write_png(const std::filesystem::path& file, const GreyPicture& picture) {
  check(picture);
  std::ofstream out(file, std::ios::binary | std::ios::trunc);
  out << signature << chunk("IHDR", header(picture)) << chunk("IDAT", compressed(rows(picture))) << chunk("IEND", {});
  out.close();
  if (!out) throw cadre::StorageError("picture " + file.string() + " cannot be written");
}

}  // namespace pictures
