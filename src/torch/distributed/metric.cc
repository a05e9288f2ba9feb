#include "cadre/train_torch/metric.h"

#include <cmath>
#include <limits>
#include <string>

#include "cadre/error.h"
#include "cadre/train_torch/group.h"

namespace cadre::train {
namespace {

void check_weight(double weight) {
  if (std::isfinite(weight) && weight >= 0) return;
  throw InvalidArgument("MeanMetric: a weight is finite and 0 or more, not " + std::to_string(weight));
}

}  // namespace

void MeanMetric::update(double value, double weight) {
  check_weight(weight);
  sum_ += weight * value;
  weight_ += weight;
}

void MeanMetric::update(const torch::Tensor& values, double weight) {
  check_weight(weight);
  if (!values.defined() || values.is_complex()) {
    throw InvalidArgument("MeanMetric: the tensor is " + std::string(values.defined() ? "complex" : "undefined"));
  }
  const torch::NoGradGuard no_gradients;
  const torch::Tensor sum = values.detach().sum(torch::kDouble) * weight;
  weight_ += weight * static_cast<double>(values.numel());
  if (sum.is_cpu()) {
    sum_ += sum.item<double>();
  } else {
    sum_on_device_ = sum_on_device_.defined() ? sum_on_device_ + sum : sum;
  }
}

double MeanMetric::compute() const {
  const double own_sum = sum_ + (sum_on_device_.defined() ? sum_on_device_.item<double>() : 0);
  torch::Tensor totals = torch::tensor({own_sum, weight_}, torch::kDouble);
  all_reduce(totals);
  const double sum = totals[0].item<double>();
  const double weight = totals[1].item<double>();
  return weight > 0 ? sum / weight : std::numeric_limits<double>::quiet_NaN();
}

void MeanMetric::reset() { *this = MeanMetric(); }

}  // namespace cadre::train
