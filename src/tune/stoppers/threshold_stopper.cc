#include "tune/stoppers/threshold_stopper.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace cadre::tune {
namespace {

class ThresholdStopper final : public Stopper {
 public:
  explicit ThresholdStopper(Thresholds thresholds) : thresholds_(std::move(thresholds)) {}

  bool on_result(const TrialView&, const Metrics& result) override { return reaches(result, thresholds_); }

 private:
  Thresholds thresholds_;
};

}  // namespace

bool reaches(const Metrics& result, const Thresholds& thresholds) {
  return std::ranges::any_of(thresholds, [&](const auto& one) {
    const auto& [metric, threshold] = one;
    const std::optional<double> value = result.number(metric);
    return value && (threshold.mode == Mode::min ? *value <= threshold.value : *value >= threshold.value);
  });
}

std::unique_ptr<Stopper> make_threshold_stopper(Thresholds thresholds) {
  return std::make_unique<ThresholdStopper>(std::move(thresholds));
}

}  // namespace cadre::tune
