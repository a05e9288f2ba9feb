// Pictures as PNG files, made from SVG by librsvg and cairo. Neither is linked: they are loaded with the first picture,
// so that a machine without them lacks only this.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace cadre::view {

// Pixels of a PNG for each pixel of its SVG: sharp on screens of high resolution and in print.
inline constexpr double kPngScale = 2;
// Largest width and height in pixels, which is cairo's.
inline constexpr int kLargestPng = 32767;

// Returns an SVG document, as view::svg::document makes it, as the bytes of a PNG file. Throws NotFound that names the
// packages to install if librsvg 2.46 or newer and cairo cannot be loaded; InvalidArgument if the document cannot be
// drawn, or would be larger than kLargestPng.
std::string to_png(std::string_view svg, double scale = kPngScale);

// The format of a picture's file, by its ending in any case: ".svg" or ".png".
enum class PictureFormat { svg, png };
// Throws InvalidArgument for another ending, or none.
PictureFormat picture_format_of(const std::filesystem::path& file);

// Writes an SVG document into a file in the format of its ending. Replaces the file atomically: after an error it is
// unchanged. Throws StorageError, too, if it cannot be written.
void write_picture(std::string_view svg, const std::filesystem::path& file);

}  // namespace cadre::view
