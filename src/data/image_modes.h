// Conversion of pictures to the modes that users choose.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "cadre/data/image.h"
#include "data/picture.h"

namespace cadre::data {

// Throws InvalidArgument with all faults in one message.
void require_valid(const DecodeImageOptions& options);
// Returns the shape of all results; empty: it depends on the image.
std::optional<std::vector<std::int64_t>> shape_of(const DecodeImageOptions& options);
// Returns the shape of an image with this header.
std::vector<std::int64_t> shape_of(const PictureHeader& header, const DecodeImageOptions& options);

// Returns the channels that a picture has after its conversion. Throws InvalidArgument if the mode does not suit it.
Channels mode_of(const PictureHeader& header, ImageMode mode);
// Returns the picture with the channels of mode_of(). Source: Pillow's Image.convert, whose results it equals.
Picture with_mode(Picture picture, ImageMode mode);

// Decodes an image like decode_image. `pixels` has as many bytes as shape_of() says.
void decode_into(PictureDecoder& decoder, const DecodeImageOptions& options, std::span<std::uint8_t> pixels);

}  // namespace cadre::data
