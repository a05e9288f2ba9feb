#include "tune/stoppers/threshold_stopper.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace cadre::tune {
namespace {

class ThresholdStopper final : public Stopper {
 public:
  explicit ThresholdStopper(Thresholds thresholds) : thresholds_(std::move(thresholds)) {}

  bool on_result(const TrialView&, const Metrics& result) override {
    return std::ranges::any_of(thresholds_, [&](const auto& one) {
      const auto& [metric, threshold] = one;
      const std::optional<double> value = result.number(metric);
      return value && (threshold.mode == Mode::min ? *value <= threshold.value : *value >= threshold.value);
    });
  }

 private:
  Thresholds thresholds_;
};

}  // namespace

std::unique_ptr<Stopper> make_threshold_stopper(Thresholds thresholds) {
  return std::make_unique<ThresholdStopper>(std::move(thresholds));
}

}  // namespace cadre::tune
