#include "tune/searchers/point_features.h"

#include <cmath>
#include <numbers>

namespace cadre::tune {
namespace {

using Eigen::Index;
using Eigen::RowVectorXd;

constexpr double kArcRadius = 3 / std::numbers::pi;  // an arc of a sixth of the circle then has length 1

}  // namespace

PointFeatures::PointFeatures(const Parameters& parameters) {
  for (const Parameter& parameter : parameters.all()) {
    const Form form = !parameter.is_ordered() ? Form::choice : parameter.condition ? Form::arc : Form::number;
    encodings_.push_back(
        {.form = form, .first = num_features_, .num_options = static_cast<double>(parameter.num_values)});
    num_features_ += form == Form::arc ? 2 : 1;
  }
}

std::vector<MaternKernel::Feature> PointFeatures::kernel_features() const {
  std::vector<MaternKernel::Feature> features;
  for (std::size_t i = 0; i < encodings_.size(); ++i) {
    const MaternKernel::Feature feature{.length_scale = static_cast<Index>(i),
                                        .categorical = encodings_[i].form == Form::choice};
    features.insert(features.end(), encodings_[i].form == Form::arc ? 2 : 1, feature);
  }
  return features;
}

RowVectorXd PointFeatures::features_of(const Point& point) const {
  constexpr double kNoOption = -1;
  RowVectorXd features = RowVectorXd::Zero(num_features_);
  for (std::size_t i = 0; i < encodings_.size(); ++i) {
    const auto& [form, first, num_options] = encodings_[i];
    const double coordinate = point[i];
    const bool exists = !std::isnan(coordinate);
    if (form == Form::number) {
      features[first] = coordinate;
    } else if (form == Form::choice) {
      features[first] = exists ? std::floor(coordinate * num_options) : kNoOption;
    } else if (exists) {
      features[first] = kArcRadius * std::sin(coordinate / kArcRadius);
      features[first + 1] = kArcRadius * std::cos(coordinate / kArcRadius);
    }
  }
  return features;
}

RowVectorXd PointFeatures::coordinate_gradient(const Point& point, const RowVectorXd& gradient) const {
  RowVectorXd coordinates = RowVectorXd::Zero(static_cast<Index>(encodings_.size()));
  for (std::size_t i = 0; i < encodings_.size(); ++i) {
    const auto& [form, first, num_options] = encodings_[i];
    const auto index = static_cast<Index>(i);
    if (form == Form::number) {
      coordinates[index] = gradient[first];
    } else if (form == Form::arc && !std::isnan(point[i])) {
      coordinates[index] =
          gradient[first] * std::cos(point[i] / kArcRadius) - gradient[first + 1] * std::sin(point[i] / kArcRadius);
    }
  }
  return coordinates;
}

}  // namespace cadre::tune
