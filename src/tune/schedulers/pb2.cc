#include "cadre/tune/schedulers/pb2.h"

#include <fmt/format.h>

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <variant>

#include "cadre/error.h"
#include "cadre/stored.h"
#include "cadre/tune/parameters.h"
#include "cadre/tune/tuner.h"
#include "tune/domain.h"
#include "tune/functions.h"
#include "tune/options/check_search_space.h"
#include "tune/schedulers/explore.h"
#include "tune/schedulers/pbt_scheduler.h"
#include "tune/schedulers/time_varying_kernel.h"
#include "tune/searchers/acquisition_search.h"

namespace cadre::tune {
namespace {

using Eigen::Index;
using Eigen::RowVectorXd;
using Eigen::VectorXd;

// Features of the model: the time, the score before, and then the coordinates of the hyper-parameters.
constexpr Index kFixedFeatures = 2;

// The upper confidence bound of the growth of the score, by the hyper-parameters, at a time and a score.
class UpperConfidenceBound final : public AcquisitionFunction {
 public:
  UpperConfidenceBound(const GaussianProcessModel& model, double width, double time, double score)
      : model_(model), width_(width), time_(time), score_(score) {}

  VectorXd values(const std::vector<Point>& points) const override {
    Eigen::MatrixXd rows(std::ssize(points), model_.data().points.cols());
    for (Index i = 0; i < rows.rows(); ++i) rows.row(i) = row_of(points[static_cast<std::size_t>(i)]);
    VectorXd means;
    VectorXd variances;
    model_.posterior(rows, means, variances);
    return means + width_ * variances.cwiseMax(kLeastVariance).cwiseSqrt();
  }
  double value(const Point& point, VectorXd& gradient) const override {
    const RowVectorXd row = row_of(point);
    const GaussianProcessModel::Posterior posterior = model_.posterior(row);
    const double deviation = std::sqrt(std::max(posterior.variance, kLeastVariance));
    const RowVectorXd in_features = model_.gradient(row, posterior, 1, width_ / (2 * deviation));
    gradient = in_features.tail(in_features.size() - kFixedFeatures).transpose();
    return posterior.mean + width_ * deviation;
  }
  VectorXd length_scales() const override {
    return VectorXd::Constant(model_.data().points.cols() - kFixedFeatures,
                              TimeVaryingKernel::length_scale(model_.hyperparameters().kernel));
  }

 private:
  static constexpr double kLeastVariance = 1e-12;

  RowVectorXd row_of(const Point& point) const {
    RowVectorXd row(kFixedFeatures + std::ssize(point));
    row << time_, score_, Eigen::Map<const RowVectorXd>(point.data(), std::ssize(point));
    return row;
  }

  const GaussianProcessModel& model_;
  double width_;
  double time_;
  double score_;
};

// Returns the domains as a search space.
Space space_of(const Mutations& bounds) {
  Space space;
  for (const auto& [key, bound] : bounds) {
    if (const auto* nested = std::get_if<std::shared_ptr<const Mutations>>(&bound.data())) {
      space.emplace_back(key, space_of(**nested));
    } else if (const auto* domain = std::get_if<Domain>(&bound.data())) {
      space.emplace_back(key, *domain);
    }
  }
  return space;
}

// Returns the dictionary with another value at a path through nested ones.
Dict with_value(Dict dict, const std::string& path, const Value& value) {
  const std::size_t slash = path.find('/');
  Config config(std::move(dict));
  if (slash == std::string::npos) {
    config.set(path, value);
  } else {
    const std::string key = path.substr(0, slash);
    config.set(key, with_value(config.get<Dict>(key), path.substr(slash + 1), value));
  }
  return config.dict();
}

// Chooses hyper-parameters by the growth of scores so far.
class BanditExplorer final : public Explorer {
 public:
  explicit BanditExplorer(PB2 options)
      : options_(std::move(options)), parameters_(space_of(options_.hyperparam_bounds)) {}

  void on_interval(const TrialView& trial, double time, double score) override;
  void on_discontinued(TrialIndex trial) override {
    if (trial < state_.starts.size()) state_.starts[trial].reset();
  }
  Explored explore(const Origin& origin, base::RandomStream& random) override;
  Value save() const override { return to_stored(state_); }
  void load(const Value& state) override;

 private:
  // The growth of a score from one interval to the next.
  struct Growth {
    double time = 0;   // at the beginning
    double score = 0;  // at the beginning; larger is better
    double rate = 0;   // per unit of time
    Point point = {};  // the hyper-parameters
  };
  // The beginning of a trial's present interval.
  struct Start {
    double time = 0;
    double score = 0;
    Point point = {};
    bool chosen = false;  // by exploring: these hyper-parameters are being tried
  };
  struct State {
    std::vector<Growth> growths = {};               // the latest ones, in their order
    std::vector<std::optional<Start>> starts = {};  // by the trial's index
  };

  Point point_of(const Config& config) const;
  Point draw(base::RandomStream& random) const;
  Point best_point(const Origin& origin, const Point& of_donor, base::RandomStream& random, std::string& basis) const;
  std::vector<Point> promising_points(const UpperConfidenceBound& bound) const;
  RowVectorXd features_of(double time, double score, const Point& point) const;
  TrainingData growths_as_data() const;

  PB2 options_;
  Parameters parameters_;
  State state_ = {};
};

void BanditExplorer::on_interval(const TrialView& trial, double time, double score) {
  constexpr std::size_t kMostGrowths = 200;
  if (state_.starts.size() <= trial.index()) state_.starts.resize(trial.index() + 1);
  std::optional<Start>& start = state_.starts[trial.index()];
  Point point = point_of(trial.config());
  if (start && time > start->time) {
    const double rate = (score - start->score) / (time - start->time);
    if (std::isfinite(rate)) state_.growths.push_back({start->time, start->score, rate, point});
    if (state_.growths.size() > kMostGrowths) state_.growths.erase(state_.growths.begin());
  }
  start = Start{.time = time, .score = score, .point = std::move(point)};
}

Explored BanditExplorer::explore(const Origin& origin, base::RandomStream& random) {
  Explored explored{.config = origin.config, .perturbations = {}};
  const bool knows = !state_.growths.empty() && std::isfinite(origin.score);
  const Point point = knows ? best_point(origin, point_of(origin.config), random, explored.basis) : draw(random);
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const Parameter& parameter = parameters_[i];
    const Value* const old_value = origin.config.find(parameter.path);
    if (old_value == nullptr) continue;  // a custom_explore_fn has removed it
    const Value chosen = std::get<Value>(at_quantile(parameter.domain, point[i]).data());
    const Value value = keep_inside(parameter.domain, with_type_of(*old_value, chosen), Bounds::clip);
    explored.perturbations.push_back({parameter.path, *old_value, knows ? "bandit" : "resample", value});
    explored.config = Config(with_value(explored.config.dict(), parameter.path, value));
  }
  customize(explored, options_.custom_explore_fn, random);
  if (state_.starts.size() <= origin.target) state_.starts.resize(origin.target + 1);
  std::optional<Start>& start = state_.starts[origin.target];
  start.reset();
  if (std::isfinite(origin.score))
    start = Start{.time = origin.time, .score = origin.score, .point = point_of(explored.config), .chosen = true};
  return explored;
}

void BanditExplorer::load(const Value& saved) {
  auto state = cadre::from_value<State>(saved);
  const auto fits = [&](const auto& one) { return one.point.size() == parameters_.size(); };
  bool all_fit = std::ranges::all_of(state.growths, fits);
  for (const std::optional<Start>& start : state.starts) all_fit &= !start || fits(*start);
  if (!all_fit)
    throw InvalidArgument(
        fmt::format("the state of PB2 has points that do not have {} hyper-parameters", parameters_.size()));
  state_ = std::move(state);
}

// Returns the coordinates of the hyper-parameters: at a bound, if a value is outside, and in the middle, if it is no
// number.
Point BanditExplorer::point_of(const Config& config) const {
  constexpr double kBelowOne = 1 - 0x1p-53;
  Point point(parameters_.size(), 0.5);
  for (std::size_t i = 0; i < point.size(); ++i) {
    const Parameter& parameter = parameters_[i];
    const std::optional<double> value = config.number(parameter.path);
    if (!value || std::isnan(*value)) continue;
    const auto inside = keep_inside(parameter.domain, Value(*value), Bounds::clip).get<double>();
    point[i] = std::min(quantiles_of(parameter.domain, inside).middle(), kBelowOne);
  }
  return parameters_.settled(std::move(point));
}

Point BanditExplorer::draw(base::RandomStream& random) const {
  Point point(parameters_.size());
  for (double& coordinate : point) coordinate = random.uniform();
  return parameters_.settled(std::move(point));
}

RowVectorXd BanditExplorer::features_of(double time, double score, const Point& point) const {
  const auto [least, greatest] = std::ranges::minmax(state_.growths, {}, &Growth::score);
  const double range = greatest.score / 2 - least.score / 2;  // halves do not overflow
  RowVectorXd row(kFixedFeatures + std::ssize(point));
  row << time / options_.perturbation_interval, (score / 2 - least.score / 2) / (range > 0 ? range : 1),
      Eigen::Map<const RowVectorXd>(point.data(), std::ssize(point));
  return row;
}

// Rates are standardised, and clipped to two standard deviations, as Ray Tune's are. Equal ones are 0, also after
// rounding.
TrainingData BanditExplorer::growths_as_data() const {
  const Index n = std::ssize(state_.growths);
  TrainingData data{.points = Eigen::MatrixXd(n, kFixedFeatures + std::ssize(parameters_.all())),
                    .values = VectorXd(n)};
  for (Index i = 0; i < n; ++i) {
    const Growth& growth = state_.growths[static_cast<std::size_t>(i)];
    data.points.row(i) = features_of(growth.time, growth.score, growth.point);
    data.values[i] = growth.rate;
  }
  constexpr double kLeastDeviation = 1e-9;
  const double largest = data.values.cwiseAbs().maxCoeff();
  if (largest > 0) data.values /= largest;
  data.values.array() -= data.values.mean();
  const double deviation = std::sqrt(data.values.squaredNorm() / static_cast<double>(n));
  data.values = (data.values / (deviation > kLeastDeviation ? deviation : 1)).cwiseMax(-2).cwiseMin(2);
  return data;
}

// Returns the different points of growths with the highest bounds, the highest first.
std::vector<Point> BanditExplorer::promising_points(const UpperConfidenceBound& bound) const {
  constexpr std::size_t kMost = 5;
  std::vector<Point> points;
  for (const Growth& growth : state_.growths) points.push_back(growth.point);
  std::ranges::sort(points);
  points.erase(std::ranges::unique(points).begin(), points.end());
  const VectorXd bounds = bound.values(points);
  std::vector<std::size_t> order(points.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::ranges::greater(), [&](std::size_t i) { return bounds[static_cast<Index>(i)]; });
  order.resize(std::min(order.size(), kMost));
  std::vector<Point> promising;
  for (const std::size_t i : order) promising.push_back(points[i]);
  return promising;
}

// Sets `basis` to words for the model.
Point BanditExplorer::best_point(const Origin& origin, const Point& of_donor, base::RandomStream& random,
                                 std::string& basis) const {
  TrainingData data = growths_as_data();
  const auto n = static_cast<double>(data.values.size());
  const auto kernel = std::make_shared<TimeVaryingKernel>();
  const Hyperparameters fitted = fit(*kernel, data, true, TimeVaryingKernel::start());
  basis = fmt::format(" by {} results (length scale {:.6g}, epsilon {:.6g}, variance {:.6g}, noise {:.6g})", n,
                      TimeVaryingKernel::length_scale(fitted.kernel), TimeVaryingKernel::epsilon(fitted.kernel),
                      kernel->variance(fitted.kernel), std::exp(fitted.log_noise));
  GaussianProcessModel model(kernel, std::move(data), fitted);
  // Expected values leave the means as they are and lower the variances.
  // Source: Desautels, Krause and Burdick, "Parallelizing Exploration-Exploitation Tradeoffs in Gaussian Process Bandit
  // Optimization" (2014).
  for (std::size_t trial = 0; trial < state_.starts.size(); ++trial) {
    const std::optional<Start>& start = state_.starts[trial];
    if (!start || !start->chosen || trial == origin.target) continue;
    const RowVectorXd row = features_of(start->time, start->score, start->point);
    model.add(row, model.posterior(row).mean);
  }
  const RowVectorXd at = features_of(origin.time, origin.score, of_donor);
  // Source of the width: Ray Tune's PB2.
  const double width = std::sqrt(0.2 + std::max(0.0, std::log(0.4 * n)));
  // The bound is high where nothing is known and near good points, so candidates are many, and some near those.
  const UpperConfidenceBound bound(model, width, at[0], at[1]);
  return maximize_acquisition(parameters_, bound,
                              {.num_candidates = 2000, .num_local_searches = 10, .incumbents = promising_points(bound)},
                              random);
}

// ---- Checks

// Adds the faults of bounds that are valid mutations.
void check_bounds(const Mutations& bounds, const Space& space, const std::string& path, Faults& faults) {
  for (const auto& [key, bound] : bounds) {
    const std::string name = path + "\"" + key + "\"";
    const SpaceEntry* const entry = find(space, key);
    if (const auto* nested = std::get_if<std::shared_ptr<const Mutations>>(&bound.data())) {
      const auto* below = entry == nullptr ? nullptr : std::get_if<std::shared_ptr<const Space>>(&entry->data());
      if (below != nullptr) {
        check_bounds(**nested, **below, name + " > ", faults);
      } else if (entry != nullptr) {
        faults.add(name, "its keys are not in every config, and PB2 models all of them: bound keys outside the choice");
      }
      continue;
    }
    const auto* domain = std::get_if<Domain>(&bound.data());
    const bool bounded = domain != nullptr && !std::holds_alternative<Normal>(*domain) &&
                         !std::holds_alternative<Choice>(*domain) && !std::holds_alternative<Ordinal>(*domain);
    faults.unless(bounded, name,
                  "PB2 models numbers between bounds: write uniform(lower, upper), loguniform, randint or lograndint; "
                  "PopulationBasedTraining explores anything else");
  }
}

}  // namespace

std::unique_ptr<Scheduler> PB2::make(const SchedulerSetting& setting) const {
  return make_pbt_scheduler(pbt_settings(*this, "PB2"), setting.seed,
                            std::make_unique<QuantileSelection>(quantile_fraction),
                            std::make_unique<BanditExplorer>(*this));
}

void PB2::check(const TunerOptions& options, Faults& faults) const {
  check_pbt_settings(pbt_settings(*this, "PB2"), faults);
  faults.unless(!hyperparam_bounds.empty(), "hyperparam_bounds",
                "name at least one hyper-parameter and its bounds: {{\"lr\", tune::loguniform(1e-5, 1e-2)}}");
  check_mutations(hyperparam_bounds, options.param_space, faults, "hyperparam_bounds ");
  check_bounds(hyperparam_bounds, options.param_space, "hyperparam_bounds ", faults);
  const std::string& custom = custom_explore_fn.function;
  if (!custom.empty()) check_registered(explore_functions(), custom_explore_fn, "custom_explore_fn", faults);
}

void PB2::complete(const TunerOptions&, std::vector<std::string>& notes) {
  hyperparam_bounds = with_sorted_bounds(hyperparam_bounds, "hyperparam_bounds ", notes);
}

Scheduler::Traits PB2::traits() const {
  return {.exploits = true, .logs_exploits = log_config, .mutated = mutated_keys(hyperparam_bounds)};
}

template class detail::HeldOptionsOf<Scheduler, SchedulerSetting, PB2>;

}  // namespace cadre::tune
