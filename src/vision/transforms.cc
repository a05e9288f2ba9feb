#include "cadre/vision/transforms.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <string>

#include "cadre/detail/gamma.h"
#include "cadre/error.h"

// The steps of each function are those of torchvision's, in the same order and precision.
namespace cadre::vision {
namespace {

[[noreturn]] void refuse(const char* function, const std::string& why) {
  throw InvalidArgument(c10::str("vision::", function, ": ", why));
}

void require(bool is_right, const char* function, const std::string& why) {
  if (!is_right) refuse(function, why);
}

void require_image(const torch::Tensor& image, const char* function) {
  require(image.defined() && image.dim() >= 3, function,
          c10::str("an image has the shape [..., channels, height, width], and this one ",
                   image.defined() ? c10::str(image.sizes()) : std::string("is undefined")));
  require(image.is_floating_point() || image.scalar_type() == torch::kUInt8, function,
          c10::str("an image has numbers from 0 to 255 (torch.uint8) or floating-point ones, and this one ",
                   image.scalar_type()));
}

void require_colours(const torch::Tensor& image, const char* function) {
  require_image(image, function);
  const std::int64_t channels = image.size(-3);
  require(channels == 1 || channels == 3, function,
          c10::str("the image must have one channel or three, and has ", channels));
}

void require_size(std::int64_t height, std::int64_t width, const char* function) {
  require(height > 0 && width > 0, function, c10::str("a size of ", height, " x ", width));
}

void require_factor(double factor, const char* function) {
  require(factor >= 0, function, c10::str("a factor of ", factor, "; it must be 0 or more"));
}

void require_probability(double p, const char* function) {
  require(p >= 0 && p <= 1, function, c10::str("p is ", p, "; it must be 0 to 1"));
}

void require_range(const std::pair<double, double>& range, const char* name, const char* function) {
  require(range.first <= range.second, function,
          c10::str(name, " from ", range.first, " to ", range.second, ": the first must not be the larger one"));
}

double largest(const torch::Tensor& image) { return image.is_floating_point() ? 1 : 255; }

torch::Tensor blend(const torch::Tensor& image, const torch::Tensor& other, double part) {
  return image.mul(part).add_(other, 1 - part).clamp_(0, largest(image)).to(image.scalar_type());
}

// Returns grey as floating-point numbers; whole ones if those of the image are.
torch::Tensor grey_of(const torch::Tensor& image) {
  const auto channel = [&](std::int64_t i) { return image.select(-3, i); };
  torch::Tensor grey = channel(0).mul(0.2989).add_(channel(1), 0.587).add_(channel(2), 0.114).unsqueeze(-3);
  return image.is_floating_point() ? grey : grey.floor_();
}

// Source of both conversions: Pillow's Convert.c, by way of torchvision.
torch::Tensor rgb_to_hsv(const torch::Tensor& image) {
  const torch::Tensor red = image.select(-3, 0);
  const torch::Tensor green = image.select(-3, 1);
  const auto [least, most] = torch::aminmax(image, -3);
  const torch::Tensor is_grey = most == least;
  const torch::Tensor range = most - least;
  const torch::Tensor ones = torch::ones_like(most);
  const torch::Tensor saturation = range / torch::where(is_grey, ones, most);
  const torch::Tensor distances = (most.unsqueeze(-3) - image) / torch::where(is_grey, ones, range).unsqueeze(-3);
  const torch::Tensor of_red = distances.select(-3, 0);
  const torch::Tensor of_green = distances.select(-3, 1);
  const torch::Tensor of_blue = distances.select(-3, 2);
  const torch::Tensor is_red = most == red;
  const torch::Tensor is_green = (most == green).logical_and(is_red.logical_not());
  const torch::Tensor is_blue = (most == green).logical_not().logical_and(is_red.logical_not());
  const torch::Tensor hue_of_green = of_red.add(2.0).sub(of_blue).mul(is_green);
  const torch::Tensor hue_of_red = of_blue.sub(of_green).mul(is_red);
  const torch::Tensor hue_of_blue = of_green.add(4.0).sub(of_red).mul(is_blue);
  const torch::Tensor hue = hue_of_red.add(hue_of_green).add(hue_of_blue).mul(1.0 / 6.0).add(1.0).fmod(1.0);
  return torch::stack({hue, saturation, most}, -3);
}

torch::Tensor hsv_to_rgb(const torch::Tensor& image) {
  const torch::Tensor saturation = image.select(-3, 1);
  const torch::Tensor value = image.select(-3, 2);
  const torch::Tensor sixths = image.select(-3, 0).mul(6);
  const torch::Tensor whole = torch::floor(sixths);
  const torch::Tensor rest = saturation * sixths.sub(whole);
  const torch::Tensor white = 1.0 - saturation;
  const torch::Tensor q = (1.0 - rest).mul(value).clamp(0, 1);
  const torch::Tensor t = rest.add(white).mul(value).clamp(0, 1);
  const torch::Tensor p = white.mul(value).clamp(0, 1);
  const torch::Tensor choices = torch::stack({value, p, q, t}, -3);
  const torch::Tensor by_sixth =
      torch::tensor({0, 2, 1, 1, 3, 0, 3, 0, 0, 2, 1, 1, 1, 1, 3, 0, 0, 2}, torch::kLong).view({3, 6});
  const torch::Tensor sixth = whole.to(torch::kLong).remainder(6);
  return choices.gather(-3, by_sixth.to(image.device()).index({torch::indexing::Slice(), sixth}).movedim(0, -3));
}

double uniform(Random& random, const std::pair<double, double>& range) {
  return range.first + random.uniform() * (range.second - range.first);
}

// Draws a whole number from 0 to `most`, inclusive.
std::int64_t up_to(Random& random, std::int64_t most) {
  return static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(most) + 1));
}

std::int64_t rounded(double number) { return static_cast<std::int64_t>(std::nearbyint(number)); }

struct Part {
  std::int64_t top = 0;
  std::int64_t left = 0;
  std::int64_t height = 0;
  std::int64_t width = 0;
};

// Returns the image in the middle that has allowed proportions.
Part middle(std::int64_t height, std::int64_t width, const std::pair<double, double>& ratio) {
  const double own = static_cast<double>(width) / static_cast<double>(height);
  Part part{.height = height, .width = width};
  if (own < ratio.first) {
    part.height = rounded(static_cast<double>(width) / ratio.first);
  } else if (own > ratio.second) {
    part.width = rounded(static_cast<double>(height) * ratio.second);
  }
  part.top = (height - part.height) / 2;
  part.left = (width - part.width) / 2;
  return part;
}

constexpr int kTries = 10;

}  // namespace

torch::Tensor to_float(const torch::Tensor& image) {
  require_image(image, "to_float");
  return image.is_floating_point() ? image : image.to(torch::kFloat).mul_(1. / 255);
}

torch::Tensor resize(const torch::Tensor& image, std::int64_t height, std::int64_t width, bool antialias) {
  require_image(image, "resize");
  require_size(height, width, "resize");
  if (image.size(-2) == height && image.size(-1) == width) return image;
  const torch::Tensor flat = (image.is_floating_point() ? image : image.to(torch::kFloat))
                                 .reshape({-1, image.size(-3), image.size(-2), image.size(-1)});
  torch::Tensor resized = antialias ? at::_upsample_bilinear2d_aa(flat, {height, width}, /*align_corners=*/false)
                                    : at::upsample_bilinear2d(flat, {height, width}, /*align_corners=*/false);
  if (!image.is_floating_point()) resized = resized.round_().clamp_(0, 255).to(image.scalar_type());
  std::vector<std::int64_t> shape = image.sizes().vec();
  shape[shape.size() - 2] = height;
  shape.back() = width;
  return resized.reshape(shape);
}

torch::Tensor resize_shorter_side(const torch::Tensor& image, std::int64_t length, bool antialias) {
  require_image(image, "resize_shorter_side");
  require(length > 0, "resize_shorter_side", c10::str("a length of ", length));
  const std::int64_t height = image.size(-2);
  const std::int64_t width = image.size(-1);
  return height <= width ? resize(image, length, length * width / height, antialias)
                         : resize(image, length * height / width, length, antialias);
}

torch::Tensor crop(const torch::Tensor& image, std::int64_t top, std::int64_t left, std::int64_t height,
                   std::int64_t width) {
  require_image(image, "crop");
  require_size(height, width, "crop");
  const std::int64_t bottom = top + height;
  const std::int64_t right = left + width;
  const torch::Tensor inside = image.slice(-2, std::max<std::int64_t>(top, 0), std::max<std::int64_t>(bottom, 0))
                                   .slice(-1, std::max<std::int64_t>(left, 0), std::max<std::int64_t>(right, 0));
  if (inside.size(-2) == height && inside.size(-1) == width) return inside;
  const auto before = [](std::int64_t begin, std::int64_t size) { return std::clamp<std::int64_t>(-begin, 0, size); };
  const std::int64_t above = before(top, height);
  const std::int64_t at_left = before(left, width);
  return torch::constant_pad_nd(inside,
                                {at_left, width - inside.size(-1) - at_left, above, height - inside.size(-2) - above});
}

torch::Tensor center_crop(const torch::Tensor& image, std::int64_t height, std::int64_t width) {
  require_image(image, "center_crop");
  // As torchvision: a smaller image is padded first, one more at the end; else the middle is rounded.
  const auto begin = [](std::int64_t own, std::int64_t wanted) {
    return wanted > own ? -((wanted - own) / 2) : rounded(static_cast<double>(own - wanted) / 2.);
  };
  return crop(image, begin(image.size(-2), height), begin(image.size(-1), width), height, width);
}

torch::Tensor pad(const torch::Tensor& image, std::int64_t pixels, double fill) {
  require_image(image, "pad");
  require(pixels >= 0, "pad", c10::str(pixels, " pixels"));
  return torch::constant_pad_nd(image, {pixels, pixels, pixels, pixels}, fill);
}

torch::Tensor horizontal_flip(const torch::Tensor& image) {
  require_image(image, "horizontal_flip");
  return image.flip(-1);
}

torch::Tensor vertical_flip(const torch::Tensor& image) {
  require_image(image, "vertical_flip");
  return image.flip(-2);
}

torch::Tensor rotate(const torch::Tensor& image, double angle, Interpolation interpolation, double fill) {
  require_image(image, "rotate");
  require(std::isfinite(angle), "rotate", c10::str("an angle of ", angle));
  const std::int64_t height = image.size(-2);
  const std::int64_t width = image.size(-1);
  double turn = std::fmod(angle, 360);
  if (turn < 0) turn += 360;
  const bool is_square = height == width;
  if (turn == 0 || turn == 180 || (is_square && (turn == 90 || turn == 270)))
    return torch::rot90(image, static_cast<std::int64_t>(turn) / 90, {-2, -1});

  const torch::ScalarType type = image.is_floating_point() ? image.scalar_type() : torch::kFloat;
  const auto options = torch::TensorOptions(image.device()).dtype(type);
  const double radians = -turn * std::numbers::pi / 180;
  const double cosine = std::cos(radians);
  const double sine = std::sin(radians);
  // Finds for each place of the result one in the image: in pixels from the middle, then in halves of the image.
  const torch::Tensor turned = torch::tensor({cosine, sine, 0., -sine, cosine, 0.}, options).view({1, 2, 3});
  const torch::Tensor halves =
      torch::tensor({0.5 * static_cast<double>(width), 0.5 * static_cast<double>(height)}, options);
  const auto places = [&](std::int64_t size) {
    const double end = 0.5 * static_cast<double>(size - 1);
    return torch::linspace(-end, end, size, torch::TensorOptions(image.device()));
  };
  const torch::Tensor grid = torch::ones({1, height, width, 3}, options);
  grid.select(-1, 0).copy_(places(width));
  grid.select(-1, 1).copy_(places(height).unsqueeze(-1));
  const torch::Tensor from =
      grid.view({1, height * width, 3}).bmm(turned.transpose(1, 2).div(halves)).view({1, height, width, 2});

  const torch::Tensor flat = image.reshape({-1, image.size(-3), height, width}).to(type);
  // A channel more says what is inside of the image.
  const torch::Tensor masked = torch::cat({flat, torch::ones({flat.size(0), 1, height, width}, options)}, 1);
  const torch::Tensor sampled = at::grid_sampler(masked, from.expand({flat.size(0), -1, -1, -1}),
                                                 /*interpolation_mode=*/interpolation == Interpolation::nearest ? 1 : 0,
                                                 /*padding_mode=*/0, /*align_corners=*/false);
  torch::Tensor result = sampled.slice(1, 0, -1);
  const torch::Tensor mask = sampled.slice(1, -1).expand_as(result);
  result = interpolation == Interpolation::nearest ? torch::where(mask < 0.5, torch::full({}, fill, options), result)
                                                   : result.sub(fill).mul(mask).add(fill);
  if (!image.is_floating_point()) result = result.round();
  return result.to(image.scalar_type()).reshape(image.sizes());
}

torch::Tensor rgb_to_grayscale(const torch::Tensor& image) {
  require_colours(image, "rgb_to_grayscale");
  return image.size(-3) == 1 ? image : grey_of(image).to(image.scalar_type());
}

torch::Tensor adjust_brightness(const torch::Tensor& image, double factor) {
  require_colours(image, "adjust_brightness");
  require_factor(factor, "adjust_brightness");
  return image.mul(factor).clamp_(0, largest(image)).to(image.scalar_type());
}

torch::Tensor adjust_contrast(const torch::Tensor& image, double factor) {
  require_colours(image, "adjust_contrast");
  require_factor(factor, "adjust_contrast");
  const torch::Tensor grey = image.size(-3) == 3         ? grey_of(image)
                             : image.is_floating_point() ? image
                                                         : image.to(torch::kFloat);
  return blend(image, grey.mean({-3, -2, -1}, /*keepdim=*/true), factor);
}

torch::Tensor adjust_saturation(const torch::Tensor& image, double factor) {
  require_colours(image, "adjust_saturation");
  require_factor(factor, "adjust_saturation");
  return image.size(-3) == 1 ? image : blend(image, grey_of(image), factor);
}

torch::Tensor adjust_hue(const torch::Tensor& image, double shift) {
  require_colours(image, "adjust_hue");
  require(shift >= -0.5 && shift <= 0.5, "adjust_hue", c10::str("a shift of ", shift, "; it must be -0.5 to 0.5"));
  if (image.size(-3) == 1) return image;
  const torch::Tensor hsv = rgb_to_hsv(to_float(image).to(torch::kFloat));
  hsv.select(-3, 0).add_(shift).remainder_(1.0);
  const torch::Tensor rgb = hsv_to_rgb(hsv);
  return image.is_floating_point() ? rgb.to(image.scalar_type()) : rgb.mul(256 - 1e-3).to(torch::kUInt8);
}

torch::Tensor Normalize::operator()(const torch::Tensor& image) const {
  require_image(image, "Normalize");
  require(image.is_floating_point(), "Normalize", "the image has whole numbers; vision::to_float comes before");
  const auto channels = static_cast<std::size_t>(image.size(-3));
  require(
      (mean.size() == channels || mean.size() == 1) && mean.size() == std.size(), "Normalize",
      c10::str("an image of ", channels, " channels, with ", mean.size(), " means and ", std.size(), " deviations"));
  require(std::ranges::find(std, 0.) == std.end(), "Normalize", "a deviation of 0");
  const auto of_channels = [&](const std::vector<double>& numbers) {
    return torch::tensor(numbers, torch::TensorOptions(image.device()).dtype(image.scalar_type())).view({-1, 1, 1});
  };
  return image.sub(of_channels(mean)).div_(of_channels(std));
}

torch::Tensor RandomCrop::operator()(const torch::Tensor& image, Random& random) const {
  require_size(height, width, "RandomCrop");
  const torch::Tensor padded = pad(image, padding, fill);
  const std::int64_t down = padded.size(-2) - height;
  const std::int64_t aside = padded.size(-1) - width;
  require(down >= 0 && aside >= 0, "RandomCrop",
          c10::str("a part of ", height, " x ", width, " of an image of ", image.size(-2), " x ", image.size(-1),
                   " with a padding of ", padding));
  const std::int64_t top = up_to(random, down);
  return crop(padded, top, up_to(random, aside), height, width);
}

torch::Tensor RandomResizedCrop::operator()(const torch::Tensor& image, Random& random) const {
  constexpr const char* name = "RandomResizedCrop";
  require_image(image, name);
  require_size(height, width, name);
  require(scale.first > 0 && ratio.first > 0, name, "scale and ratio must be above 0");
  require_range(scale, "scale", name);
  require_range(ratio, "ratio", name);
  const std::int64_t own_height = image.size(-2);
  const std::int64_t own_width = image.size(-1);
  Part part = middle(own_height, own_width, ratio);
  for (int i = 0; i < kTries; ++i) {
    const double area = static_cast<double>(own_height * own_width) * uniform(random, scale);
    const double proportion = std::exp(uniform(random, {std::log(ratio.first), std::log(ratio.second)}));
    const std::int64_t w = rounded(std::sqrt(area * proportion));
    const std::int64_t h = rounded(std::sqrt(area / proportion));
    if (w <= 0 || w > own_width || h <= 0 || h > own_height) continue;
    const std::int64_t top = up_to(random, own_height - h);
    part = {.top = top, .left = up_to(random, own_width - w), .height = h, .width = w};
    break;
  }
  return resize(crop(image, part.top, part.left, part.height, part.width), height, width, antialias);
}

torch::Tensor RandomHorizontalFlip::operator()(const torch::Tensor& image, Random& random) const {
  require_probability(p, "RandomHorizontalFlip");
  return random.uniform() < p ? horizontal_flip(image) : image;
}

torch::Tensor RandomVerticalFlip::operator()(const torch::Tensor& image, Random& random) const {
  require_probability(p, "RandomVerticalFlip");
  return random.uniform() < p ? vertical_flip(image) : image;
}

torch::Tensor RandomRotation::operator()(const torch::Tensor& image, Random& random) const {
  require_range(degrees, "degrees", "RandomRotation");
  return rotate(image, uniform(random, degrees), interpolation, fill);
}

torch::Tensor ColorJitter::operator()(const torch::Tensor& image, Random& random) const {
  constexpr const char* name = "ColorJitter";
  for (const double most : {brightness, contrast, saturation, hue}) require(most >= 0, name, "a value below 0");
  require(hue <= 0.5, name, c10::str("a hue of ", hue, "; it must be 0 to 0.5"));
  std::array<int, 4> order{};
  std::iota(order.begin(), order.end(), 0);
  std::ranges::shuffle(order, random);
  // All numbers are drawn, in this order, so that one does not depend on whether another one is used.
  const auto factor = [&](double most) { return uniform(random, {std::max(0., 1 - most), 1 + most}); };
  const double by_brightness = factor(brightness);
  const double by_contrast = factor(contrast);
  const double by_saturation = factor(saturation);
  const double by_hue = uniform(random, {-hue, hue});
  torch::Tensor result = image;
  for (const int one : order) {
    if (one == 0 && brightness > 0) result = adjust_brightness(result, by_brightness);
    if (one == 1 && contrast > 0) result = adjust_contrast(result, by_contrast);
    if (one == 2 && saturation > 0) result = adjust_saturation(result, by_saturation);
    if (one == 3 && hue > 0) result = adjust_hue(result, by_hue);
  }
  return result;
}

torch::Tensor RandomErasing::operator()(const torch::Tensor& image, Random& random) const {
  constexpr const char* name = "RandomErasing";
  require_image(image, name);
  require_probability(p, name);
  require(scale.first >= 0 && scale.second <= 1, name, "a scale outside of 0 to 1");
  require(ratio.first > 0, name, "a ratio must be above 0");
  require_range(scale, "scale", name);
  require_range(ratio, "ratio", name);
  if (random.uniform() >= p) return image;
  const std::int64_t height = image.size(-2);
  const std::int64_t width = image.size(-1);
  for (int i = 0; i < kTries; ++i) {
    const double area = static_cast<double>(height * width) * uniform(random, scale);
    const double proportion = std::exp(uniform(random, {std::log(ratio.first), std::log(ratio.second)}));
    const std::int64_t h = rounded(std::sqrt(area * proportion));
    const std::int64_t w = rounded(std::sqrt(area / proportion));
    if (h >= height || w >= width) continue;
    torch::Tensor erased = image.clone();
    const std::int64_t top = up_to(random, height - h);
    erased.narrow(-2, top, h).narrow(-1, up_to(random, width - w), w).fill_(value);
    return erased;
  }
  return image;
}

torch::data::Example<> MixUp::operator()(std::vector<torch::data::Example<>> examples, Random& random) const {
  return (*this)(torch::data::transforms::Stack<torch::data::Example<>>().apply_batch(std::move(examples)), random);
}

torch::data::Example<> MixUp::operator()(torch::data::Example<> batch, Random& random) const {
  require(alpha > 0, "MixUp", c10::str("an alpha of ", alpha, "; it must be above 0"));
  require(batch.data.is_floating_point(), "MixUp", "the images have whole numbers; vision::to_float comes before");
  require(batch.target.dim() == 1 && !batch.target.is_floating_point(), "MixUp",
          c10::str("labels are one whole number each, and these have the shape ", batch.target.sizes()));
  const torch::Tensor highest = batch.target.max();
  require(batch.target.min().item<std::int64_t>() >= 0 && highest.item<std::int64_t>() < num_classes, "MixUp",
          c10::str("labels up to ", highest.item<std::int64_t>(), " of ", num_classes, " classes"));
  const double one = cadre::detail::draw_gamma(random, alpha);
  const double other = cadre::detail::draw_gamma(random, alpha);
  const double part = one / (one + other);
  const auto mixed = [&](const torch::Tensor& values) {
    return values.roll(1, 0).mul_(1 - part).add_(values.mul(part));
  };
  return {mixed(batch.data),
          mixed(torch::one_hot(batch.target.to(torch::kLong), num_classes).to(batch.data.scalar_type()))};
}

}  // namespace cadre::vision
