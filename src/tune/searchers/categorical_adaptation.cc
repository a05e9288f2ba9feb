#include "tune/searchers/categorical_adaptation.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "cadre/error.h"

namespace cadre::tune {

CategoricalAdaptation::CategoricalAdaptation(const std::vector<std::size_t>& numbers_of_options, double least_share)
    : least_share_(least_share) {
  std::size_t freedom = 0;
  for (const std::size_t options : numbers_of_options) {
    state_.probabilities.emplace_back(options, 1 / static_cast<double>(options));
    freedom += options - 1;
  }
  state_.signal.assign(freedom, 0);
}

void CategoricalAdaptation::restore(State state) {
  const auto fits = [](const std::vector<double>& a, const std::vector<double>& b) { return a.size() == b.size(); };
  if (!std::ranges::equal(state.probabilities, state_.probabilities, fits) || !fits(state.signal, state_.signal))
    throw InvalidArgument("the state is of other choices");
  state_ = std::move(state);
}

std::size_t CategoricalAdaptation::option_at(std::size_t choice, double quantile) const {
  const std::vector<double>& shares = probabilities(choice);
  std::size_t option = 0;
  for (; option + 1 < shares.size() && quantile >= shares[option]; ++option) quantile -= shares[option];
  return option;
}

void CategoricalAdaptation::prefer(std::size_t choice, std::size_t option, double share) {
  for (double& probability : state_.probabilities[choice]) probability *= 1 - share;
  state_.probabilities[choice][option] += share;
  keep_least_probabilities();
}

std::vector<std::vector<double>> CategoricalAdaptation::gradient(
    const std::vector<std::vector<std::optional<std::size_t>>>& solutions, const std::vector<double>& weights) const {
  std::vector<std::vector<double>> sums;
  for (std::size_t choice = 0; choice < state_.probabilities.size(); ++choice) {
    std::vector<double>& sum = sums.emplace_back(probabilities(choice).size(), 0.0);
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const std::optional<std::size_t> option = solutions[i][choice];
      if (!option) continue;
      for (std::size_t j = 0; j < sum.size(); ++j)
        sum[j] += weights[i] * ((*option == j ? 1 : 0) - probabilities(choice)[j]);
    }
  }
  return sums;
}

// Returns the gradient times a root of the Fisher information, so that its length is that of the change.
std::vector<double> CategoricalAdaptation::in_fisher_metric(const std::vector<std::vector<double>>& gradient) const {
  std::vector<double> transformed;
  for (std::size_t choice = 0; choice < gradient.size(); ++choice) {
    const std::vector<double>& own = gradient[choice];
    const std::vector<double>& shares = probabilities(choice);
    const double all_but_last = std::accumulate(own.begin(), own.end() - 1, 0.0);
    for (std::size_t j = 0; j + 1 < own.size(); ++j)
      transformed.push_back(own[j] / std::sqrt(shares[j]) +
                            std::sqrt(shares[j]) * all_but_last / (shares.back() + std::sqrt(shares.back())));
  }
  return transformed;
}

// Makes steps longer while the gradient points the same way for several generations, and shorter otherwise.
void CategoricalAdaptation::adapt_step(const std::vector<double>& direction) {
  constexpr double signal_to_noise = 1.5;
  const double rate = 1 / (state_.inverse_step * std::sqrt(static_cast<double>(direction.size())));
  double square = 0;
  for (std::size_t j = 0; j < direction.size(); ++j) {
    state_.signal[j] = (1 - rate) * state_.signal[j] + std::sqrt(rate * (2 - rate)) * direction[j];
    square += state_.signal[j] * state_.signal[j];
  }
  state_.gamma = (1 - rate) * (1 - rate) * state_.gamma + rate * (2 - rate);
  state_.inverse_step *= std::exp(rate * (state_.gamma - square / signal_to_noise));
  state_.inverse_step = std::max(state_.inverse_step, 1 / std::sqrt(static_cast<double>(direction.size())));
}

void CategoricalAdaptation::keep_least_probabilities() {
  const double one = 1 - std::pow(1 - least_share_, 1 / static_cast<double>(state_.probabilities.size()));
  for (std::vector<double>& shares : state_.probabilities) {
    if (shares.size() < 2) continue;
    const double least = std::min(one / static_cast<double>(shares.size() - 1), 1 / static_cast<double>(shares.size()));
    double sum = 0;
    for (double& share : shares) sum += share = std::max(share, least);
    const double spare = sum - least * static_cast<double>(shares.size());
    if (spare <= 0) continue;
    for (double& share : shares) share -= (sum - 1) * (share - least) / spare;
    const double total = std::accumulate(shares.begin(), shares.end(), 0.0);
    for (double& share : shares) share /= total;
  }
}

void CategoricalAdaptation::adapt(const std::vector<std::vector<std::optional<std::size_t>>>& solutions,
                                  const std::vector<double>& weights) {
  const std::vector<std::vector<double>> change = gradient(solutions, weights);
  std::vector<double> direction = in_fisher_metric(change);
  const double length = std::sqrt(std::inner_product(direction.begin(), direction.end(), direction.begin(), 0.0));
  if (length < 1e-12) return;
  for (double& one : direction) one /= length;
  const double step = 1 / state_.inverse_step / length;
  for (std::size_t choice = 0; choice < change.size(); ++choice) {
    for (std::size_t j = 0; j < change[choice].size(); ++j) state_.probabilities[choice][j] += step * change[choice][j];
  }
  adapt_step(direction);
  keep_least_probabilities();
}

}  // namespace cadre::tune
