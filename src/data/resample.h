// Changes the size of pictures as Pillow does.
#pragma once

#include <cstdint>

#include "cadre/data/image_changes.h"
#include "data/picture.h"

namespace cadre::data {

// Returns the picture in another size. Source: Pillow's Image.resize with BILINEAR, whose results it equals but for
// rounding (Pillow 13 begins with the rows or with the columns): a filter as wide as the pixels of the result, in two
// passes with integers, over colours that are multiplied by their alpha; pictures with a palette or one bit per pixel
// take the nearest pixels.
Picture resample(Picture picture, std::int64_t height, std::int64_t width);
// Does the same with a part of the picture, which lies within it.
Picture resample_part(Picture picture, const ImageArea& area, std::int64_t height, std::int64_t width);
// Returns a part of the picture, which lies within it.
Picture part_of(const Picture& picture, const ImageArea& area);

}  // namespace cadre::data
