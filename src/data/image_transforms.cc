#include "cadre/data/image_transforms.h"

#include <arrow/array.h>
#include <arrow/memory_pool.h>
#include <arrow/type.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numeric>
#include <optional>
#include <span>

#include "base/overload.h"
#include "cadre/error.h"
#include "data/image_modes.h"
#include "data/image_place.h"
#include "data/memory_reserve.h"
#include "data/tensor_columns.h"

namespace cadre::data {
namespace {

namespace steps = transforms;

using Range = std::pair<double, double>;

// ---- Checks

// Collects the faults of one step.
class StepFaults {
 public:
  StepFaults(std::string step, std::string& all) : step_(std::move(step)), all_(all) {}

  void require(bool holds, const std::string& fault) {
    if (!holds) all_ += fmt::format("\n  {}: {}", step_, fault);
  }
  void require_size(const ImageSize& size) {
    constexpr std::int64_t kMost = 65500;
    const bool fits = size.height >= 1 && size.height <= kMost && size.width >= 1 && size.width <= kMost;
    require(fits,
            fmt::format("size is {{{}, {}}}; height and width must be from 1 to {}", size.height, size.width, kMost));
  }
  void require_probability(double p) { require(p >= 0 && p <= 1, fmt::format("p is {}; it must be from 0 to 1", p)); }
  void require_range(const char* name, const Range& range, double least, double most) {
    require(range.first >= least && range.second <= most && range.first <= range.second,
            fmt::format("{} is {{{}, {}}}; it must be a smaller and a larger number from {} to {}", name, range.first,
                        range.second, least, most));
  }

 private:
  std::string step_;
  std::string& all_;
};

constexpr double kLeastRatio = 1e-3;
constexpr double kMostRatio = 1e3;

void check_step(const steps::Resize& step, StepFaults& faults) { faults.require_size(step.size); }
void check_step(const steps::CenterCrop& step, StepFaults& faults) { faults.require_size(step.size); }
void check_step(const steps::RandomCrop& step, StepFaults& faults) {
  constexpr std::int64_t kMostPadding = 65500;
  faults.require_size(step.size);
  faults.require(step.padding >= 0 && step.padding <= kMostPadding,
                 fmt::format("padding is {}; it must be from 0 to {}", step.padding, kMostPadding));
}
void check_step(const steps::RandomResizedCrop& step, StepFaults& faults) {
  faults.require_size(step.size);
  faults.require_range("scale", step.scale, 0, 1);
  faults.require_range("ratio", step.ratio, kLeastRatio, kMostRatio);
}
void check_step(const steps::RandomHorizontalFlip& step, StepFaults& faults) { faults.require_probability(step.p); }
void check_step(const steps::RandomVerticalFlip& step, StepFaults& faults) { faults.require_probability(step.p); }
void check_step(const steps::RandomRotation& step, StepFaults& faults) {
  faults.require_range("degrees", step.degrees, -360, 360);
}
void check_step(const steps::ColorJitter& step, StepFaults& faults) {
  const auto require = [&](const char* name, double value, double most) {
    faults.require(value >= 0 && value <= most, fmt::format("{} is {}; it must be from 0 to {}", name, value, most));
  };
  require("brightness", step.brightness, 1e3);
  require("contrast", step.contrast, 1e3);
  require("saturation", step.saturation, 1e3);
  require("hue", step.hue, 0.5);
}
void check_step(const steps::Normalize& step, StepFaults& faults) {
  const std::size_t means = step.mean.size();
  faults.require(means == step.std.size() && means >= 1 && means <= 4,
                 fmt::format("mean has {} numbers and std {}; give both one number, or one for each channel", means,
                             step.std.size()));
  const auto is_finite = [](double number) { return std::isfinite(number); };
  faults.require(std::ranges::all_of(step.mean, is_finite) && std::ranges::all_of(step.std, is_finite),
                 "mean and std must be finite numbers");
  faults.require(std::ranges::find(step.std, 0.) == step.std.end(), "std has a 0; leave out what is not divided");
}

const char* name_of(const ImageTransform& step) {
  constexpr std::array kNames = {
      "Resize",         "CenterCrop",  "RandomCrop", "RandomResizedCrop", "RandomHorizontalFlip", "RandomVerticalFlip",
      "RandomRotation", "ColorJitter", "Normalize"};
  static_assert(kNames.size() == std::variant_size_v<ImageTransform>);
  return kNames[step.index()];
}

bool is_normalize(const ImageTransform& step) { return std::holds_alternative<steps::Normalize>(step); }

void check_steps(const std::vector<ImageTransform>& all, const ImageTransformsOptions& options) {
  std::string faults;
  for (std::size_t i = 0; i < all.size(); ++i) {
    StepFaults of_step(fmt::format("step {}, {}", i + 1, name_of(all[i])), faults);
    std::visit([&](const auto& step) { check_step(step, of_step); }, all[i]);
    of_step.require(!is_normalize(all[i]) || i + 1 == all.size(), "it must be the last step");
  }
  if (options.epoch >= std::uint64_t{1} << 24)
    faults += fmt::format("\n  epoch is {}; it must be below 2^24", options.epoch);
  if (!faults.empty()) throw InvalidArgument("the transforms of images cannot begin:" + faults);
}

bool is_random(const ImageTransform& step) {
  return !std::holds_alternative<steps::Resize>(step) && !std::holds_alternative<steps::CenterCrop>(step) &&
         !is_normalize(step);
}

// ---- Steps. Random numbers are used in the order of cadre/vision/transforms.h.

double draw(Random& random, const Range& range) {
  return range.first + random.uniform() * (range.second - range.first);
}

// Draws a whole number from 0 to `most`, inclusive.
std::int64_t draw_up_to(Random& random, std::int64_t most) {
  return static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(most) + 1));
}

std::int64_t to_whole(double number) { return static_cast<std::int64_t>(std::nearbyint(number)); }

// Returns the part in the middle of an image that has allowed proportions.
ImageArea middle_of(const Image& image, const Range& ratio) {
  const double own = static_cast<double>(image.width) / static_cast<double>(image.height);
  ImageArea area{.height = image.height, .width = image.width};
  if (own < ratio.first) {
    area.height = std::max<std::int64_t>(to_whole(static_cast<double>(image.width) / ratio.first), 1);
  } else if (own > ratio.second) {
    area.width = std::max<std::int64_t>(to_whole(static_cast<double>(image.height) * ratio.second), 1);
  }
  area.top = (image.height - area.height) / 2;
  area.left = (image.width - area.width) / 2;
  return area;
}

ImageArea draw_area(const steps::RandomResizedCrop& step, const Image& image, Random& random) {
  constexpr int kTries = 10;
  for (int i = 0; i < kTries; ++i) {
    const double area = static_cast<double>(image.height * image.width) * draw(random, step.scale);
    const double proportion = std::exp(draw(random, {std::log(step.ratio.first), std::log(step.ratio.second)}));
    const std::int64_t width = to_whole(std::sqrt(area * proportion));
    const std::int64_t height = to_whole(std::sqrt(area / proportion));
    if (width <= 0 || width > image.width || height <= 0 || height > image.height) continue;
    const std::int64_t top = draw_up_to(random, image.height - height);
    return {.top = top, .left = draw_up_to(random, image.width - width), .height = height, .width = width};
  }
  return middle_of(image, step.ratio);
}

Image do_step(const steps::Resize& step, Image image, Random&) { return resize(std::move(image), step.size); }
Image do_step(const steps::CenterCrop& step, Image image, Random&) { return center_crop(image, step.size); }
Image do_step(const steps::RandomCrop& step, Image image, Random& random) {
  const std::int64_t down = image.height + 2 * step.padding - step.size.height;
  const std::int64_t aside = image.width + 2 * step.padding - step.size.width;
  if (down < 0 || aside < 0)
    throw InvalidArgument(
        fmt::format("RandomCrop: a part of {} x {} pixels does not fit into an image of {} x {} with a padding of {}: "
                    "resize before",
                    step.size.height, step.size.width, image.height, image.width, step.padding));
  const std::int64_t top = draw_up_to(random, down) - step.padding;
  const std::int64_t left = draw_up_to(random, aside) - step.padding;
  return crop(image, {.top = top, .left = left, .height = step.size.height, .width = step.size.width}, step.fill);
}
Image do_step(const steps::RandomResizedCrop& step, Image image, Random& random) {
  const ImageArea area = draw_area(step, image, random);
  return resized_crop(std::move(image), area, step.size);
}
Image do_step(const steps::RandomHorizontalFlip& step, Image image, Random& random) {
  return random.uniform() < step.p ? horizontal_flip(std::move(image)) : image;
}
Image do_step(const steps::RandomVerticalFlip& step, Image image, Random& random) {
  return random.uniform() < step.p ? vertical_flip(std::move(image)) : image;
}
Image do_step(const steps::RandomRotation& step, Image image, Random& random) {
  return rotate(image, draw(random, step.degrees), step.fill);
}
Image do_step(const steps::ColorJitter& step, Image image, Random& random) {
  std::array<int, 4> order{};
  std::iota(order.begin(), order.end(), 0);
  std::ranges::shuffle(order, random);
  // All numbers are drawn, in this order, so that one does not depend on whether another one is used.
  const auto factor = [&](double most) { return draw(random, {std::max(0., 1 - most), 1 + most}); };
  const double by_brightness = factor(step.brightness);
  const double by_contrast = factor(step.contrast);
  const double by_saturation = factor(step.saturation);
  const double by_hue = draw(random, {-step.hue, step.hue});
  for (const int one : order) {
    if (one == 0 && step.brightness > 0) image = adjust_brightness(std::move(image), by_brightness);
    if (one == 1 && step.contrast > 0) image = adjust_contrast(std::move(image), by_contrast);
    if (one == 2 && step.saturation > 0) image = adjust_saturation(std::move(image), by_saturation);
    if (one == 3 && step.hue > 0) image = adjust_hue(std::move(image), by_hue);
  }
  return image;
}
Image do_step(const steps::Normalize&, Image image, Random&) { return image; }

// ---- Columns

// Numbers of bytes, one table for each channel.
using NumberTables = std::vector<std::array<float, 256>>;

NumberTables tables_of(const steps::Normalize& step) {
  NumberTables tables(step.mean.size());
  for (std::size_t channel = 0; channel < tables.size(); ++channel) {
    const auto mean = static_cast<float>(step.mean[channel]);
    const auto deviation = static_cast<float>(step.std[channel]);
    for (std::size_t value = 0; value < 256; ++value)
      tables[channel][value] = (static_cast<float>(value) / 255.0F - mean) / deviation;
  }
  return tables;
}

void normalize_into(const Image& image, const NumberTables& tables, float* out) {
  const auto channels = static_cast<std::size_t>(image.channels);
  const auto count = static_cast<std::size_t>(image.height * image.width);
  if (tables.size() != 1 && tables.size() != channels)
    throw InvalidArgument(
        fmt::format("Normalize: the image has {} channels, and mean and std have {} numbers: give as many, or a `mode`",
                    channels, tables.size()));
  for (std::size_t channel = 0; channel < channels; ++channel) {
    const auto& table = tables[tables.size() == 1 ? 0 : channel];
    const std::uint8_t* in = image.pixels.data() + channel;
    for (std::size_t i = 0; i < count; ++i, in += channels) *out++ = table[*in];
  }
}

// The images of a column, which are files' bytes or tensors.
class ImagesOfColumn {
 public:
  ImagesOfColumn(const Batch& batch, std::string_view column, ImageMode mode)
      : batch_(batch), column_(column), options_{.mode = mode} {
    const std::string type = batch.type(column);
    if (type == "binary" || type == "large_binary" || type == "binary_view") bytes_ = batch.texts(column);
  }

  Image image(std::int64_t row) const {
    if (bytes_) return decode_image((*bytes_)[static_cast<std::size_t>(row)], options_);
    const Batch one = batch_.slice(row, 1);
    const std::vector<std::int64_t> shape = one.row_shape(column_);
    if (shape.size() != 2 && shape.size() != 3)
      throw InvalidArgument(fmt::format(
          "it has the shape {{{}}}; an image is bytes of a file, or uint8 in the shape {{height, width}} or "
          "{{height, width, channels}}",
          fmt::join(shape, ", ")));
    const auto pixels = one.values<std::uint8_t>(column_);
    return {.height = shape[0],
            .width = shape[1],
            .channels = shape.size() == 3 ? shape[2] : 1,
            .pixels = {pixels.begin(), pixels.end()}};
  }

 private:
  const Batch& batch_;
  std::string_view column_;
  DecodeImageOptions options_;
  std::optional<std::vector<std::string_view>> bytes_;  // empty: tensors
};

std::vector<std::int64_t> float_shape(const Image& image) { return {image.channels, image.height, image.width}; }

}  // namespace

struct ImageTransforms::State {
  std::vector<ImageTransform> steps;
  ImageTransformsOptions options;
  std::optional<NumberTables> tables = {};  // empty: bytes stay bytes
  bool is_random = false;
  std::shared_ptr<MemoryReserve> memory = std::make_shared<MemoryReserve>(arrow::default_memory_pool());

  std::vector<std::int64_t> row_numbers(const Batch& batch) const {
    if (!is_random) return std::vector<std::int64_t>(static_cast<std::size_t>(batch.num_rows()));
    if (!batch.has(options.row_column))
      throw InvalidArgument(
          fmt::format("the batch has no column \"{}\" with the numbers of its rows, on which random transforms depend: "
                      "call with_row_numbers(dataset) before, or name the column as `row_column`",
                      options.row_column));
    return batch.to_vector<std::int64_t>(options.row_column);
  }
  Image transform(Image image, Random& random) const {
    for (const ImageTransform& one : steps)
      image = std::visit([&](const auto& step) { return do_step(step, std::move(image), random); }, one);
    return image;
  }
  std::vector<std::int64_t> shape_of(const Image& image) const { return tables ? float_shape(image) : image.shape(); }
  void write(const Image& image, std::uint8_t* out) const {
    if (tables) return normalize_into(image, *tables, reinterpret_cast<float*>(out));
    std::ranges::copy(image.pixels, out);
  }
};

ImageTransforms::ImageTransforms(std::vector<ImageTransform> all, ImageTransformsOptions options)
    : state_(std::make_unique<State>(State{.steps = std::move(all), .options = std::move(options)})) {
  check_steps(state_->steps, state_->options);
  if (!state_->steps.empty() && is_normalize(state_->steps.back()))
    state_->tables = tables_of(std::get<steps::Normalize>(state_->steps.back()));
  state_->is_random = std::ranges::any_of(state_->steps, is_random);
}

ImageTransforms::~ImageTransforms() = default;
ImageTransforms::ImageTransforms(ImageTransforms&&) noexcept = default;
ImageTransforms& ImageTransforms::operator=(ImageTransforms&&) noexcept = default;

Image ImageTransforms::operator()(Image image, Random& random) const {
  return state_->transform(std::move(image), random);
}

Column ImageTransforms::operator()(const Batch& batch, std::string_view column) const {
  const ImagesOfColumn images(batch, column, state_->options.mode);
  const std::vector<std::int64_t> numbers = state_->row_numbers(batch);
  std::vector<std::int64_t> shape = {1, 1, 1};
  std::shared_ptr<arrow::MutableBuffer> memory;
  std::int64_t row_bytes = 0;
  const auto add = [&](std::int64_t row) {
    KeyedRandom random = KeyedRandom::of_example(state_->options.seed, state_->options.epoch,
                                                 static_cast<std::uint64_t>(numbers[static_cast<std::size_t>(row)]));
    const Image image = state_->transform(images.image(row), *random);
    if (memory == nullptr) {
      shape = state_->shape_of(image);
      row_bytes = std::ssize(image.pixels) * static_cast<std::int64_t>(state_->tables ? sizeof(float) : 1);
      memory = state_->memory->lend(batch.num_rows() * row_bytes);
    }
    if (state_->shape_of(image) != shape)
      throw InvalidArgument(
          fmt::format("it has the shape {} after the transforms, and row 0 has {}: end with Resize, a crop, or another "
                      "`mode`",
                      fmt::join(state_->shape_of(image), " x "), fmt::join(shape, " x ")));
    state_->write(image, memory->mutable_data() + row * row_bytes);
  };
  for (std::int64_t row = 0; row < batch.num_rows(); ++row) {
    const auto where = [&] {
      return fmt::format("cannot transform {}: ", place_of_image(batch, column, row, state_->options.row_column));
    };
    try {
      add(row);
    } catch (const StorageError& error) {
      throw StorageError(where() + error.what());
    } catch (const InvalidArgument& error) {
      throw InvalidArgument(where() + error.what());
    }
  }
  if (memory == nullptr) memory = state_->memory->lend(0);
  const auto type = state_->tables ? arrow::float32() : arrow::uint8();
  const std::int64_t values = memory->size() / type->byte_width();
  return Column(make_tensors(arrow::MakeArray(arrow::ArrayData::Make(type, values, {nullptr, memory}, 0)), shape));
}

}  // namespace cadre::data
