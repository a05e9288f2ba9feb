/// \file
/// Changes of images: functions that do one thing, and objects that do it at random, for train::transform. Names,
/// options and results are those of torchvision.transforms.v2 (0.28) for tensors; random numbers are Cadre's.
///
///     auto augmented = train::transform(images, vision::compose(
///         vision::RandomResizedCrop{.height = 224, .width = 224}, vision::RandomHorizontalFlip(), vision::to_float,
///         vision::Normalize{.mean = {0.485, 0.456, 0.406}, .std = {0.229, 0.224, 0.225}}));
///
/// An image is a tensor of the shape [..., channels, height, width], with whole numbers from 0 to 255 (torch::kUInt8)
/// or floating-point numbers, for colours from 0 to 1. All functions return a new tensor of the same type, or a view of
/// the image, and throw InvalidArgument for a tensor of another shape or type than they say.
///
/// Threads: any.
#pragma once

#include <torch/torch.h>

#include <array>
#include <cstdint>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "cadre/random.h"

namespace cadre::vision {

/// How values between pixels are found.
enum class Interpolation {
  nearest,   ///< the nearest pixel's value
  bilinear,  ///< a mean of the four pixels around
};

// ---- Functions

/// Returns the image with floating-point numbers: 0 to 255 becomes 0 to 1. Other floating-point images are returned as
/// they are.
torch::Tensor to_float(const torch::Tensor& image);
/// Returns the image with this height and width, both above 0, as a mean of the pixels around each place; `antialias`
/// takes more of them where the image becomes smaller. Whole numbers are rounded.
torch::Tensor resize(const torch::Tensor& image, std::int64_t height, std::int64_t width, bool antialias = true);
/// Returns the image with this length of its shorter side, above 0, and the proportions it had.
torch::Tensor resize_shorter_side(const torch::Tensor& image, std::int64_t length, bool antialias = true);
/// Returns a part of the image; what lies outside of it is 0.
torch::Tensor crop(const torch::Tensor& image, std::int64_t top, std::int64_t left, std::int64_t height,
                   std::int64_t width);
/// Returns the part in the middle; what lies outside of the image is 0.
torch::Tensor center_crop(const torch::Tensor& image, std::int64_t height, std::int64_t width);
/// Returns the image with so many pixels more on each side, of the value `fill`.
torch::Tensor pad(const torch::Tensor& image, std::int64_t pixels, double fill = 0);
/// Returns the image with left and right exchanged.
torch::Tensor horizontal_flip(const torch::Tensor& image);
/// Returns the image with top and bottom exchanged.
torch::Tensor vertical_flip(const torch::Tensor& image);
/// Returns the image turned counter-clockwise about its middle by an angle in degrees; what lies outside of it is
/// `fill`.
torch::Tensor rotate(const torch::Tensor& image, double angle, Interpolation interpolation = Interpolation::nearest,
                     double fill = 0);
/// Returns the image in one channel of grey, by the weights of ITU-R 601. It must have one channel or three.
torch::Tensor rgb_to_grayscale(const torch::Tensor& image);
/// Returns the image with its brightness multiplied by a factor, 0 or more. It must have one channel or three, here and
/// below.
torch::Tensor adjust_brightness(const torch::Tensor& image, double factor);
/// Returns the image with its differences to the mean of its grey multiplied by a factor, 0 or more.
torch::Tensor adjust_contrast(const torch::Tensor& image, double factor);
/// Returns the image with its differences to grey multiplied by a factor, 0 or more.
torch::Tensor adjust_saturation(const torch::Tensor& image, double factor);
/// Returns the image with its hues turned by a part of the colour circle, -0.5 to 0.5.
torch::Tensor adjust_hue(const torch::Tensor& image, double shift);

// ---- Objects for train::transform

/// Brings each channel of floating-point numbers to a mean of 0 and a deviation of 1 where it had these.
struct Normalize {
  std::vector<double> mean;                                    ///< one for each channel
  std::vector<double> std;                                     ///< one for each channel, none of them 0
  torch::Tensor operator()(const torch::Tensor& image) const;  ///< returns the image's change
};

/// resize() as an object.
struct Resize {
  std::int64_t height = 0;  ///< above 0
  std::int64_t width = 0;   ///< above 0
  bool antialias = true;    ///< see resize()
  /// Returns the image's change.
  torch::Tensor operator()(const torch::Tensor& image) const { return resize(image, height, width, antialias); }
};

/// center_crop() as an object.
struct CenterCrop {
  std::int64_t height = 0;  ///< above 0
  std::int64_t width = 0;   ///< above 0
  /// Returns the image's change.
  torch::Tensor operator()(const torch::Tensor& image) const { return center_crop(image, height, width); }
};

/// Takes a part of the image, anywhere in it. An image that is smaller than that throws InvalidArgument.
struct RandomCrop {
  std::int64_t height = 0;   ///< above 0
  std::int64_t width = 0;    ///< above 0
  std::int64_t padding = 0;  ///< pixels that each side gets before, 0 or more
  double fill = 0;           ///< their value
  torch::Tensor operator()(const torch::Tensor& image, Random& random) const;  ///< returns the image's change
};

/// Takes a part of the image of random size and proportions, and resizes it. Source: "Going Deeper with Convolutions",
/// Szegedy et al.
struct RandomResizedCrop {
  std::int64_t height = 0;                             ///< above 0
  std::int64_t width = 0;                              ///< above 0
  std::pair<double, double> scale = {0.08, 1};         ///< least and largest part of the area
  std::pair<double, double> ratio = {3. / 4, 4. / 3};  ///< least and largest width divided by height
  bool antialias = true;                               ///< see resize()
  torch::Tensor operator()(const torch::Tensor& image, Random& random) const;  ///< returns the image's change
};

/// Exchanges left and right of some of the images.
struct RandomHorizontalFlip {
  double p = 0.5;                                                              ///< of which part, 0 to 1
  torch::Tensor operator()(const torch::Tensor& image, Random& random) const;  ///< returns the image's change
};

/// Exchanges top and bottom of some of the images.
struct RandomVerticalFlip {
  double p = 0.5;                                                              ///< of which part, 0 to 1
  torch::Tensor operator()(const torch::Tensor& image, Random& random) const;  ///< returns the image's change
};

/// Turns the image about its middle.
struct RandomRotation {
  std::pair<double, double> degrees = {0, 0};            ///< least and largest angle, counter-clockwise
  Interpolation interpolation = Interpolation::nearest;  ///< see rotate()
  double fill = 0;                                       ///< of what lies outside of the image
  torch::Tensor operator()(const torch::Tensor& image, Random& random) const;  ///< returns the image's change
};

/// Changes brightness, contrast, saturation and hue, in random order. Each is the most by which a factor differs from
/// 1, or a hue from its own.
struct ColorJitter {
  double brightness = 0;                                                       ///< 0 or more
  double contrast = 0;                                                         ///< 0 or more
  double saturation = 0;                                                       ///< 0 or more
  double hue = 0;                                                              ///< 0 to 0.5
  torch::Tensor operator()(const torch::Tensor& image, Random& random) const;  ///< returns the image's change
};

/// Fills a rectangle of some of the images. Source: "Random Erasing Data Augmentation", Zhong et al.
struct RandomErasing {
  double p = 0.5;                                  ///< of which part of the images, 0 to 1
  std::pair<double, double> scale = {0.02, 0.33};  ///< least and largest part of the area
  std::pair<double, double> ratio = {0.3, 3.3};    ///< least and largest height divided by width
  double value = 0;                                ///< with which
  torch::Tensor operator()(const torch::Tensor& image, Random& random) const;  ///< returns the image's change
};

/// Mixes the images of a batch in pairs, and their labels: a collate function for train::prepare_data_loader, whose
/// batches have labels of the shape [batch, num_classes] then. Source: "mixup: Beyond Empirical Risk Minimization",
/// Zhang et al.
struct MixUp {
  double alpha = 1;              ///< of the beta distribution of the parts, above 0
  std::int64_t num_classes = 0;  ///< labels are from 0 to this, exclusive
  /// Returns a batch of images of the same shape, with floating-point numbers, each mixed with the one before it.
  torch::data::Example<> operator()(torch::data::Example<> batch, Random& random) const;
  /// Does the same with examples that are no batch yet.
  torch::data::Example<> operator()(std::vector<torch::data::Example<>> examples, Random& random) const;
};

namespace detail {

template <class Transform>
torch::Tensor apply(const Transform& transform, const torch::Tensor& image, Random& random) {
  if constexpr (requires { transform(image, random); }) {
    return transform(image, random);
  } else {
    return transform(image);
  }
}

}  // namespace detail

/// Returns a transform that applies these in order: functions and objects of here, or any that take a tensor, or a
/// tensor and a Random.
template <class... Transforms>
auto compose(Transforms... transforms) {
  return [all = std::make_tuple(std::move(transforms)...)](torch::Tensor image, Random& random) {
    std::apply([&](const auto&... one) { ((image = detail::apply(one, image, random)), ...); }, all);
    return image;
  };
}

}  // namespace cadre::vision
