#include "cadre/data/mix_up.h"

#include <fmt/format.h>

#include <cmath>
#include <span>
#include <utility>
#include <vector>

#include "cadre/detail/gamma.h"
#include "cadre/error.h"
#include "cadre/random.h"

namespace cadre::data {
namespace {

constexpr std::uint32_t kLayer = 255;  // apart from the numbers of the rows' own transforms

void check_mix_up(const MixUpOptions& options) {
  std::string faults;
  if (!(options.alpha > 0) || !std::isfinite(options.alpha))
    faults += fmt::format("\n  alpha is {}; it must be above 0", options.alpha);
  if (options.num_classes < 1) faults += fmt::format("\n  num_classes is {}; it must be above 0", options.num_classes);
  if (options.epoch >= std::uint64_t{1} << 24)
    faults += fmt::format("\n  epoch is {}; it must be below 2^24", options.epoch);
  if (!faults.empty()) throw InvalidArgument("mix_up cannot begin:" + faults);
}

std::vector<float> one_hot(const Batch& batch, const std::string& column, std::int64_t classes) {
  const std::vector<std::int64_t> labels = batch.to_vector<std::int64_t>(column);
  std::vector<float> rows(labels.size() * static_cast<std::size_t>(classes));
  for (std::size_t row = 0; row < labels.size(); ++row) {
    if (labels[row] < 0 || labels[row] >= classes)
      throw InvalidArgument(
          fmt::format("mix_up: column \"{}\" has the label {} in row {}; labels are from 0 to "
                      "num_classes - 1, which is {}",
                      column, labels[row], row, classes - 1));
    rows[row * static_cast<std::size_t>(classes) + static_cast<std::size_t>(labels[row])] = 1;
  }
  return rows;
}

// Mixes each of `rows` rows with the one before it.
std::vector<float> mixed_rows(std::span<const float> values, std::int64_t rows, float part) {
  std::vector<float> result(values.size());
  const std::size_t length = values.size() / static_cast<std::size_t>(rows);
  for (std::size_t at = 0; at < values.size(); ++at) {
    const float before = values[at < length ? values.size() - length + at : at - length];
    result[at] = before * (1 - part) + values[at] * part;
  }
  return result;
}

}  // namespace

Batch mix_up(const Batch& batch, const std::string& image_column, const std::string& label_column,
             const MixUpOptions& options) {
  check_mix_up(options);
  const auto images = batch.values<float>(image_column);
  const std::vector<float> labels = one_hot(batch, label_column, options.num_classes);
  if (batch.num_rows() == 0) return batch.with(label_column, Column(labels, {options.num_classes}));
  const auto row = batch.to_vector<std::int64_t>(options.row_column).front();
  KeyedRandom random = KeyedRandom::of_example(options.seed, options.epoch, static_cast<std::uint64_t>(row), kLayer);
  const double one = cadre::detail::draw_gamma(*random, options.alpha);
  const double other = cadre::detail::draw_gamma(*random, options.alpha);
  const auto part = static_cast<float>(one / (one + other));
  return batch.with(image_column, Column(mixed_rows(images, batch.num_rows(), part), batch.row_shape(image_column)))
      .with(label_column, Column(mixed_rows(labels, batch.num_rows(), part), {options.num_classes}));
}

}  // namespace cadre::data
