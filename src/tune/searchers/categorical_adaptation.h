// Probabilities of options that follow the best solutions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace cadre::tune {

// Independent categorical distributions, adapted by the natural gradient with a step size that follows the gradient's
// signal and noise, and with a least probability for each option.
// Source: Akimoto et al., "Adaptive Stochastic Natural Gradient Method for One-Shot Neural Architecture Search" (2019);
// Hamano et al., "CatCMA: Stochastic Optimization for Mixed-Category Problems" (2024) for the least probability.
class CategoricalAdaptation {
 public:
  struct State {
    std::vector<std::vector<double>> probabilities = {};
    std::vector<double> signal = {};  // accumulated gradient
    double gamma = 0;                 // accumulated weight of it
    double inverse_step = 1;
  };

  // All options have the same probability. `numbers_of_options` are at least 1 each; `least_share` is the share of
  // solutions that shall have an option other than the likeliest in each distribution, from 0 to below 1.
  CategoricalAdaptation(const std::vector<std::size_t>& numbers_of_options, double least_share);
  // Restores a state of such distributions. Throws InvalidArgument if it is of others.
  void restore(State state);
  const State& state() const { return state_; }

  const std::vector<double>& probabilities(std::size_t choice) const { return state_.probabilities[choice]; }
  // Returns the option at a quantile, from 0 to below 1.
  std::size_t option_at(std::size_t choice, double quantile) const;
  // Moves probability to an option: as many as `share` of all solutions shall have it for that reason.
  void prefer(std::size_t choice, std::size_t option, double share);
  // Adapts the probabilities to the options of the best solutions, each with a weight; empty: it lacks the choice.
  void adapt(const std::vector<std::vector<std::optional<std::size_t>>>& solutions, const std::vector<double>& weights);

 private:
  std::vector<std::vector<double>> gradient(const std::vector<std::vector<std::optional<std::size_t>>>& solutions,
                                            const std::vector<double>& weights) const;
  std::vector<double> in_fisher_metric(const std::vector<std::vector<double>>& gradient) const;
  void adapt_step(const std::vector<double>& direction);
  void keep_least_probabilities();

  double least_share_;
  State state_ = {};
};

}  // namespace cadre::tune
