#include "cadre/tune/searchers/gaussian_process.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "base/random.h"
#include "cadre/tune/tuner.h"
#include "tune/searchers/acquisition_search.h"
#include "tune/searchers/constrained_improvement.h"
#include "tune/searchers/gaussian_process_model.h"
#include "tune/searchers/observations.h"
#include "tune/searchers/point_features.h"
#include "tune/searchers/value_warping.h"

namespace cadre::tune {
namespace {

using Eigen::Index;
using Eigen::VectorXd;

constexpr double kFailedLoss = std::numeric_limits<double>::infinity();

// The factors by which models stretch differences of good losses, see warped_losses(). Trials have them in turn: in
// benchmarks/search, 10 is better in a long valley, 1 in finding the best of several minima with eight trials at a
// time, and turns come close to the better one. They do better than a choice by the marginal likelihood, which is
// nearly always 1, and than one by the predictive density of the best losses, which is worse on ackley20.
constexpr std::array<double, 2> kStretches{1, 10};

// A trial as the models see it.
struct Evaluation {
  TrialIndex trial = 0;
  Point point = {};
  double loss = 0;
  double violation = 0;
  std::vector<double> excesses = {};  // over the limits of constraints; empty: not known, because it failed
};

// Returns how many of n evaluations, the first ones, hyper-parameters are fitted to: n, or the next smaller number of
// a growing series, so that many suggestions share a fit.
std::size_t num_fitted(std::size_t n) {
  constexpr double kGrowth = 1.05;
  std::size_t fitted = 1;
  while (true) {
    const auto next = std::max(fitted + 1, static_cast<std::size_t>(static_cast<double>(fitted) * kGrowth));
    if (next > n) return fitted;
    fitted = next;
  }
}

// Returns the indices of evaluations from the best to the worst: by what they break constraints, then by loss.
std::vector<std::size_t> ranking(const std::vector<Evaluation>& evaluations) {
  std::vector<std::size_t> order(evaluations.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [&](std::size_t index) {
    return std::tuple(evaluations[index].violation, evaluations[index].loss, index);
  });
  return order;
}

// Returns the best half of `most` and the latest others, in their order.
std::vector<Evaluation> selected(const std::vector<Evaluation>& evaluations, std::size_t most) {
  if (evaluations.size() <= most) return evaluations;
  std::vector<std::size_t> order = ranking(evaluations);
  std::ranges::sort(order.begin() + static_cast<std::ptrdiff_t>(most / 2), order.end(), std::ranges::greater());
  order.resize(most);
  std::ranges::sort(order);
  std::vector<Evaluation> kept;
  for (const std::size_t index : order) kept.push_back(evaluations[index]);
  return kept;
}

// Fits hyper-parameters, and remembers the last fit: a suggestion often needs the one that the suggestion before did.
class RememberedFit {
 public:
  Hyperparameters of(const Kernel& kernel, TrainingData data, bool noisy) {
    if (data.points.rows() != data_.points.rows() || data.points != data_.points || data.values != data_.values) {
      fitted_ = fit_by_halves(kernel, data, noisy);
      data_ = std::move(data);
    }
    return fitted_;
  }

 private:
  TrainingData data_ = {};
  Hyperparameters fitted_ = {};
};

class GaussianProcessSearcher final : public Searcher {
 public:
  GaussianProcessSearcher(GaussianProcess options, const SearcherSetting& setting)
      : options_(std::move(options)),
        seed_(setting.seed),
        observations_(setting, {}, options_.constraints),
        features_(observations_.parameters()),
        kernel_(std::make_shared<MaternKernel>(features_.kernel_features())),
        constraint_fits_(options_.constraints.size()) {}

  std::optional<Config> suggest(TrialIndex trial) const override {
    const std::vector<Evaluation> evaluations = this->evaluations();
    const Parameters& parameters = observations_.parameters();
    if (std::ssize(evaluations) < options_.n_startup_trials) return parameters.config_of(startup_point(trial));
    return parameters.config_of(best_point(trial, evaluations));
  }
  void on_trial_add(TrialIndex trial, const Config& config) override {
    failed_.erase(trial);
    observations_.on_trial_add(trial, config);
  }
  void on_trial_end(TrialIndex trial, TrialStatus status, const Metrics& last_result) override;
  std::string debug_string() const override {
    return fmt::format("GaussianProcess: {} trials observed, {} failed", observations_.ended().size(), failed_.size());
  }

 private:
  std::vector<Evaluation> evaluations() const;
  Point startup_point(TrialIndex trial) const;
  Point best_point(TrialIndex trial, const std::vector<Evaluation>& evaluations) const;
  GaussianProcessModel loss_model(TrialIndex trial, const std::vector<Evaluation>& evaluations) const;
  std::vector<LimitedModel> constraint_models(const std::vector<Evaluation>& evaluations) const;
  TrainingData loss_data(const std::vector<Evaluation>& evaluations, double stretch) const;
  TrainingData constraint_data(const std::vector<Evaluation>& evaluations, std::size_t constraint, double& limit) const;
  // Returns the evaluations that hyper-parameters are fitted to.
  std::vector<Evaluation> fitted(const std::vector<Evaluation>& evaluations) const {
    constexpr std::size_t kMostFitted = 120;
    const auto end = evaluations.begin() + static_cast<std::ptrdiff_t>(num_fitted(evaluations.size()));
    return selected({evaluations.begin(), end}, std::min(kMostFitted, most_modelled()));
  }
  std::size_t most_modelled() const { return static_cast<std::size_t>(options_.max_observations); }
  double add_expectation(GaussianProcessModel& model, const Point& point) const {
    const Eigen::RowVectorXd row = features_.features_of(point);
    const double mean = model.posterior(row).mean;
    model.add(row, mean);
    return mean;
  }
  double best_loss(const GaussianProcessModel& model, const std::vector<Evaluation>& evaluations) const;

  GaussianProcess options_;
  std::uint64_t seed_;
  Observations observations_;
  PointFeatures features_;
  std::shared_ptr<const MaternKernel> kernel_;
  std::map<TrialIndex, Point> failed_ = {};
  std::map<TrialIndex, std::vector<double>> excesses_ = {};  // of ended trials
  mutable std::array<RememberedFit, kStretches.size()> loss_fits_ = {};
  mutable std::vector<RememberedFit> constraint_fits_;
};

void GaussianProcessSearcher::on_trial_end(TrialIndex trial, TrialStatus status, const Metrics& last_result) {
  const auto open = observations_.open().find(trial);
  if (open == observations_.open().end()) return;
  if (status == TrialStatus::error) failed_[trial] = open->second;
  std::vector<double>& excesses = excesses_[trial];
  excesses.clear();
  for (const Constraint& constraint : options_.constraints) {
    const double value = last_result.number(constraint.metric).value_or(kFailedLoss);
    excesses.push_back(std::isnan(value) ? kFailedLoss : value - constraint.at_most);
  }
  observations_.on_trial_end(trial, status, last_result);
}

// Returns all trials that count, by their index.
std::vector<Evaluation> GaussianProcessSearcher::evaluations() const {
  std::vector<double> final_losses;
  for (const Observation& one : observations_.ended()) {
    if (!one.stopped) final_losses.push_back(one.loss());
  }
  double median = -kFailedLoss;
  if (!final_losses.empty()) {
    const auto middle = final_losses.begin() + std::ssize(final_losses) / 2;
    std::ranges::nth_element(final_losses, middle);
    median = *middle;
  }
  std::vector<Evaluation> evaluations;
  for (const Observation& one : observations_.ended()) {
    const double loss = one.stopped ? std::max(one.loss(), median) : one.loss();
    evaluations.push_back({one.trial, one.point, loss, one.violation, excesses_.at(one.trial)});
  }
  for (const auto& [trial, point] : failed_)
    evaluations.push_back({.trial = trial, .point = point, .loss = kFailedLoss, .violation = kFailedLoss});
  std::ranges::sort(evaluations, {}, &Evaluation::trial);
  return evaluations;
}

// Returns a point of a Latin hypercube of n_startup_trials; later trials are in another one.
// Source: McKay, Beckman and Conover, "A Comparison of Three Methods for Selecting Values of Input Variables" (1979).
Point GaussianProcessSearcher::startup_point(TrialIndex trial) const {
  constexpr std::uint64_t kHypercubes = std::uint64_t{1} << 32;  // index of their random numbers, apart from others
  const Parameters& parameters = observations_.parameters();
  const auto size = static_cast<TrialIndex>(options_.n_startup_trials);
  const TrialIndex place = trial % size;
  base::RandomStream shared(seed_, static_cast<std::uint32_t>(trial - place), base::Purpose::suggestion, kHypercubes);
  base::RandomStream own(seed_, static_cast<std::uint32_t>(trial), base::Purpose::suggestion);
  std::vector<double> layers(static_cast<std::size_t>(size));
  Point point(parameters.size());
  for (double& coordinate : point) {
    std::iota(layers.begin(), layers.end(), 0.0);
    for (std::size_t i = layers.size(); i > 1; --i) std::swap(layers[i - 1], layers[shared.below(i)]);
    coordinate = (layers[static_cast<std::size_t>(place)] + own.uniform()) / static_cast<double>(size);
    coordinate = std::min(coordinate, std::nextafter(1.0, 0.0));
  }
  return parameters.settled(std::move(point));
}

TrainingData GaussianProcessSearcher::loss_data(const std::vector<Evaluation>& evaluations, double stretch) const {
  TrainingData data{.points = Eigen::MatrixXd(std::ssize(evaluations), features_.size())};
  std::vector<double> losses;
  for (const Evaluation& one : evaluations) {
    data.points.row(std::ssize(losses)) = features_.features_of(one.point);
    losses.push_back(one.loss);
  }
  data.values = warped_losses(losses, stretch);
  return data;
}

// Also sets the limit in units of the values.
TrainingData GaussianProcessSearcher::constraint_data(const std::vector<Evaluation>& evaluations,
                                                      std::size_t constraint, double& limit) const {
  TrainingData data{.points = Eigen::MatrixXd(std::ssize(evaluations), features_.size())};
  std::vector<double> excesses;
  for (const Evaluation& one : evaluations) {
    if (one.excesses.empty()) continue;
    data.points.row(std::ssize(excesses)) = features_.features_of(one.point);
    excesses.push_back(one.excesses[constraint]);
  }
  data.points.conservativeResize(std::ssize(excesses), Eigen::NoChange);
  WarpedLimit warped = warped_excesses(excesses);
  data.values = std::move(warped.values);
  limit = warped.limit;
  return data;
}

GaussianProcessModel GaussianProcessSearcher::loss_model(TrialIndex trial,
                                                         const std::vector<Evaluation>& evaluations) const {
  const std::size_t turn = trial % kStretches.size();
  const double stretch = kStretches[turn];
  const Hyperparameters hyperparameters =
      loss_fits_[turn].of(*kernel_, loss_data(fitted(evaluations), stretch), !options_.deterministic);
  return {kernel_, loss_data(selected(evaluations, most_modelled()), stretch), hyperparameters};
}

std::vector<LimitedModel> GaussianProcessSearcher::constraint_models(const std::vector<Evaluation>& evaluations) const {
  std::vector<LimitedModel> models;
  for (std::size_t i = 0; i < options_.constraints.size(); ++i) {
    double limit = 0;
    TrainingData first = constraint_data(fitted(evaluations), i, limit);
    TrainingData data = constraint_data(selected(evaluations, most_modelled()), i, limit);
    if (first.values.size() == 0 || data.values.size() == 0) continue;  // all have failed
    models.push_back({.model = {kernel_, std::move(data),
                                constraint_fits_[i].of(*kernel_, std::move(first), !options_.deterministic)},
                      .limit = limit});
  }
  return models;
}

// Returns the least loss of a trial that keeps constraints, in the model's units: its mean there if losses are noisy.
double GaussianProcessSearcher::best_loss(const GaussianProcessModel& model,
                                          const std::vector<Evaluation>& evaluations) const {
  VectorXd losses = model.data().values;
  VectorXd variances;
  if (!options_.deterministic) model.posterior(model.data().points, losses, variances);
  double best = kFailedLoss;
  for (std::size_t i = 0; i < evaluations.size(); ++i) {
    if (evaluations[i].violation == 0) best = std::min(best, losses[static_cast<Index>(i)]);
  }
  return best;
}

// Open trials count as if they had the results that the models expect.
// Source: Ginsbourger, Le Riche and Carraro, "Kriging Is Well-Suited to Parallelize Optimization" (2010), which calls
// it kriging believer.
Point GaussianProcessSearcher::best_point(TrialIndex trial, const std::vector<Evaluation>& evaluations) const {
  GaussianProcessModel loss = loss_model(trial, evaluations);
  std::vector<LimitedModel> constraints = constraint_models(evaluations);
  const std::vector<Evaluation> modelled = selected(evaluations, most_modelled());
  double best = best_loss(loss, modelled);
  for (const auto& [open, point] : observations_.open()) {
    const double loss_there = add_expectation(loss, point);
    bool keeps_limits = true;
    for (auto& [model, limit] : constraints) keeps_limits &= add_expectation(model, point) <= limit;
    if (keeps_limits && std::isfinite(best)) best = std::min(best, loss_there);
  }
  AcquisitionSearch search{.num_candidates = 600};
  constexpr std::size_t kIncumbents = 5;
  for (const std::size_t index : ranking(modelled)) {
    if (search.incumbents.size() < kIncumbents) search.incumbents.push_back(modelled[index].point);
  }
  base::RandomStream stream(seed_, static_cast<std::uint32_t>(trial), base::Purpose::suggestion);
  return maximize_acquisition(observations_.parameters(),
                              ConstrainedImprovement(features_, loss, best, constraints, !options_.deterministic),
                              search, stream);
}

}  // namespace

std::unique_ptr<Searcher> GaussianProcess::make(const SearcherSetting& setting) const {
  return std::make_unique<GaussianProcessSearcher>(*this, setting);
}

void GaussianProcess::check(const TunerOptions&, Faults& faults) const {
  faults.unless(n_startup_trials >= 1 && n_startup_trials <= 100'000, "n_startup_trials",
                fmt::format("it is {}; it must be from 1 to 100,000", n_startup_trials));
  faults.unless(max_observations >= 10 && max_observations <= 10'000, "max_observations",
                fmt::format("it is {}; it must be from 10 to 10,000", max_observations));
  check_constraints(constraints, faults);
}

template class detail::HeldOptionsOf<Searcher, SearcherSetting, GaussianProcess>;

}  // namespace cadre::tune
