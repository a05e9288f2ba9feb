/// \file
/// Steps that change the images of a dataset in its workers, also at random: resize, crop, flip, rotate, change
/// colours, normalise. Random numbers depend on a seed, the epoch and the row only (with_row_numbers), and are used as
/// cadre/vision/transforms.h uses them, whose names these are; pixels are those of cadre/data/image_changes.h.
///
///     class Augment {
///      public:
///       explicit Augment(const CallContext& context)
///           : transforms_({transforms::RandomResizedCrop{.size = {224, 224}}, transforms::RandomHorizontalFlip(),
///                          transforms::Normalize{.mean = {0.485, 0.456, 0.406}, .std = {0.229, 0.224, 0.225}}},
///                         {.seed = 7, .epoch = context.epoch}) {}
///       Batch operator()(const Batch& batch) { return batch.with("image", transforms_(batch, "bytes")); }
///
///      private:
///       ImageTransforms transforms_;
///     };
///
///     data::with_row_numbers(data::read_binary_files("train"))
///         .map_batches(data::actor<Augment>(), {.batch_size = 64});
///
/// Threads: any.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "cadre/data/batch.h"
#include "cadre/data/image.h"
#include "cadre/data/image_changes.h"
#include "cadre/random.h"

namespace cadre::data {

/// The steps of ImageTransforms.
namespace transforms {

/// resize() as a step.
struct Resize {
  ImageSize size = {};  ///< of the result
};

/// center_crop() as a step.
struct CenterCrop {
  ImageSize size = {};  ///< of the result
};

/// A part of the image, anywhere in it. An image that is smaller than that is an InvalidArgument.
struct RandomCrop {
  ImageSize size = {};       ///< of the result
  std::int64_t padding = 0;  ///< pixels that each side gets before, 0 or more
  std::uint8_t fill = 0;     ///< their value
};

/// A part of the image of random size and proportions, resized. Source: "Going Deeper with Convolutions", Szegedy et
/// al.
struct RandomResizedCrop {
  ImageSize size = {};                                 ///< of the result
  std::pair<double, double> scale = {0.08, 1};         ///< least and largest part of the area, within 0 to 1
  std::pair<double, double> ratio = {3. / 4, 4. / 3};  ///< least and largest width divided by height, above 0
};

/// Exchanges left and right of some of the images.
struct RandomHorizontalFlip {
  double p = 0.5;  ///< of which part, 0 to 1
};

/// Exchanges top and bottom of some of the images.
struct RandomVerticalFlip {
  double p = 0.5;  ///< of which part, 0 to 1
};

/// rotate() by a random angle.
struct RandomRotation {
  std::pair<double, double> degrees = {0, 0};  ///< least and largest angle, counter-clockwise
  std::uint8_t fill = 0;                       ///< of pixels outside of the image
};

/// Changes brightness, contrast, saturation and hue, in random order. Each is the most by which a factor differs from
/// 1, or a hue from its own.
struct ColorJitter {
  double brightness = 0;  ///< 0 or more
  double contrast = 0;    ///< 0 or more
  double saturation = 0;  ///< 0 or more
  double hue = 0;         ///< 0 to 0.5
};

/// Makes floating-point numbers of the bytes, (value / 255 - mean) / std, in the shape {channels, height, width}. The
/// last step.
struct Normalize {
  std::vector<double> mean = {0};  ///< one for each channel, or one for all
  std::vector<double> std = {1};   ///< as many, none of them 0
};

}  // namespace transforms

/// A step of ImageTransforms.
using ImageTransform =
    std::variant<transforms::Resize, transforms::CenterCrop, transforms::RandomCrop, transforms::RandomResizedCrop,
                 transforms::RandomHorizontalFlip, transforms::RandomVerticalFlip, transforms::RandomRotation,
                 transforms::ColorJitter, transforms::Normalize>;

/// Options of ImageTransforms.
struct ImageTransformsOptions {
  std::uint64_t seed = 0;  ///< of the random numbers
  /// Up to 2^24 - 1, usually CallContext::epoch: in each, an image has other random numbers.
  std::uint64_t epoch = 0;
  std::string row_column = "row";   ///< the rows' numbers (with_row_numbers); needed by random steps only
  ImageMode mode = ImageMode::rgb;  ///< in which bytes of files are decoded
};

/// Steps that change each image of a batch. An object may be used by one thread at a time; memory of columns that are
/// gone is used again by later ones.
class ImageTransforms {
 public:
  /// Throws InvalidArgument that lists all faults of the steps.
  explicit ImageTransforms(std::vector<ImageTransform> steps, ImageTransformsOptions options = {});
  ~ImageTransforms();
  ImageTransforms(ImageTransforms&&) noexcept;             ///< leaves an object that can only be destroyed
  ImageTransforms& operator=(ImageTransforms&&) noexcept;  ///< leaves an object that can only be destroyed

  /// Returns a column of tensors of the changed images: of float with Normalize, else of uint8 with the shape of
  /// Image::shape(). The column of the batch has the bytes of JPEG and PNG files, or uint8 tensors of images, as
  /// read_images makes them. Throws the errors of decode_image, with the row, and InvalidArgument, with the row, for an
  /// image that a step does not suit and for results of different shapes: end with Resize or a crop.
  Column operator()(const Batch& batch, std::string_view column) const;
  /// Returns one image after all steps but Normalize.
  Image operator()(Image image, Random& random) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace cadre::data
