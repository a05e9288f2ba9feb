#include "cadre/tune/searchers/cmaes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "base/normal_distribution.h"
#include "base/random.h"
#include "cadre/stored.h"
#include "cadre/tune/tuner.h"
#include "tune/searchers/categorical_adaptation.h"
#include "tune/searchers/covariance_adaptation.h"
#include "tune/searchers/low_discrepancy_sequence.h"
#include "tune/searchers/observations.h"

namespace cadre::tune {
namespace {

class CmaesSearcher final : public Searcher {
 public:
  CmaesSearcher(CMAES options, const SearcherSetting& setting);

  std::optional<Config> suggest(TrialIndex trial) const override;
  void on_trial_add(TrialIndex trial, const Config& config) override;
  void on_trial_end(TrialIndex trial, TrialStatus status, const Metrics& last_result) override;
  Value save() const override;
  void load(const Value& state) override;
  std::string debug_string() const override;

 private:
  static constexpr double kBelowOne = 1 - 0x1p-53;
  static constexpr double kLeastShare = 0.27;  // of trials with other options than the likeliest; as CatCMA has it

  // A point as it was drawn: ordered parameters before they are settled.
  struct Draw {
    Eigen::VectorXd ordered;
    Point point;
  };
  // A trial that has not been used yet.
  struct Member {
    std::vector<double> ordered = {};
    bool is_suggested = true;     // false: it has a config that was not suggested
    std::int64_t run = 0;         // between restarts of CMA-ES
    std::int64_t generation = 0;  // of the distribution
  };
  // Counts since CMA-ES began, over all of its restarts.
  struct Restarts {
    std::int64_t run = 0;
    std::int64_t doublings = 0;      // of the population
    bool is_small = false;           // the run has a small population
    std::int64_t large_trials = 0;   // in runs with large populations
    std::int64_t small_trials = 0;   // in the others
    std::vector<double> bests = {};  // best loss of each of the run's last generations
  };
  struct State {
    CmaDistribution::State distribution = {};
    CategoricalAdaptation::State choices = {};
    std::int64_t population = 0;
    Restarts restarts = {};
    std::vector<std::pair<TrialIndex, Member>> members = {};
    std::vector<TrialIndex> ended = {};
  };

  static std::vector<std::size_t> numbers_of_options(const Parameters& parameters,
                                                     const std::vector<std::size_t>& choices);
  std::size_t option_of(std::size_t choice, double coordinate) const;
  Point quantiles_of(TrialIndex trial) const;
  Draw draw(TrialIndex trial) const;
  double value_of(std::size_t parameter, double drawn, double settled) const;
  const Observation* find(TrialIndex trial) const;
  std::int64_t first_population() const {
    return options_.popsize.value_or(4 + static_cast<std::int64_t>(3 * std::log(num_adapted_)));
  }
  void end_generation();
  CmaSolution solution_of(const Observation& observation, const Member& member) const;
  void keep_margins();
  std::int64_t num_compared_generations() const;
  bool is_narrowest() const;
  bool has_converged() const;
  void begin_anew();

  CMAES options_;
  std::uint64_t seed_;
  Observations observations_;
  std::vector<std::size_t> ordered_;  // parameters in the normal distribution
  std::vector<std::size_t> choices_;  // parameters with a categorical distribution
  double num_adapted_;                // number of both
  std::optional<SobolSequence> sequence_;
  std::int64_t population_;
  CmaDistribution distribution_{Eigen::VectorXd(), 1};
  CategoricalAdaptation categories_{{}, 0};
  Restarts restarts_ = {};
  std::map<TrialIndex, Member> members_ = {};
  std::vector<TrialIndex> ended_ = {};  // of the generation, in the order in which they ended
};

CmaesSearcher::CmaesSearcher(CMAES options, const SearcherSetting& setting)
    : options_(std::move(options)), seed_(setting.seed), observations_(setting, {}, options_.constraints) {
  const Parameters& parameters = observations_.parameters();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i].num_values == 1) continue;
    (parameters[i].is_ordered() ? ordered_ : choices_).push_back(i);
  }
  num_adapted_ = std::max(static_cast<double>(ordered_.size() + choices_.size()), 1.0);
  population_ = first_population();
  if (parameters.size() <= SobolSequence::kMostDimensions) sequence_.emplace(parameters.size(), seed_);

  categories_ = CategoricalAdaptation(numbers_of_options(parameters, choices_), kLeastShare);
  Eigen::VectorXd mean = Eigen::VectorXd::Constant(static_cast<Eigen::Index>(ordered_.size()), 0.5);
  if (const std::optional<Point> x0 = options_.x0 ? parameters.point_of(*options_.x0) : std::nullopt) {
    for (std::size_t i = 0; i < ordered_.size(); ++i) {
      const double coordinate = (*x0)[ordered_[i]];
      if (!std::isnan(coordinate)) mean[static_cast<Eigen::Index>(i)] = coordinate;
    }
    for (std::size_t i = 0; i < choices_.size(); ++i) {
      const double coordinate = (*x0)[choices_[i]];
      if (!std::isnan(coordinate)) categories_.prefer(i, option_of(choices_[i], coordinate), 0.5);
    }
  }
  distribution_ = CmaDistribution(std::move(mean), options_.sigma0);
  keep_margins();
}

std::vector<std::size_t> CmaesSearcher::numbers_of_options(const Parameters& parameters,
                                                           const std::vector<std::size_t>& choices) {
  std::vector<std::size_t> numbers;
  for (const std::size_t choice : choices) numbers.push_back(static_cast<std::size_t>(parameters[choice].num_values));
  return numbers;
}

std::size_t CmaesSearcher::option_of(std::size_t choice, double coordinate) const {
  return static_cast<std::size_t>(coordinate * static_cast<double>(observations_.parameters()[choice].num_values));
}

// ---- Suggestions

std::optional<Config> CmaesSearcher::suggest(TrialIndex trial) const {
  const Parameters& parameters = observations_.parameters();
  return parameters.config_of(parameters.settled(draw(trial).point));
}

Point CmaesSearcher::quantiles_of(TrialIndex trial) const {
  if (sequence_) return sequence_->point(trial);
  base::RandomStream random(seed_, trial, base::Purpose::suggestion);
  Point quantiles(observations_.parameters().size());
  std::ranges::generate(quantiles, [&] { return random.uniform(); });
  return quantiles;
}

CmaesSearcher::Draw CmaesSearcher::draw(TrialIndex trial) const {
  const Point quantiles = quantiles_of(trial);
  Draw draw{.ordered = {}, .point = Point(quantiles.size(), 0.5)};
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    const auto option = static_cast<double>(categories_.option_at(i, quantiles[choices_[i]]));
    draw.point[choices_[i]] = (option + 0.5) / static_cast<double>(observations_.parameters()[choices_[i]].num_values);
  }
  Eigen::VectorXd normal(static_cast<Eigen::Index>(ordered_.size()));
  for (std::size_t i = 0; i < ordered_.size(); ++i)
    normal[static_cast<Eigen::Index>(i)] =
        base::normal_quantile(std::clamp(quantiles[ordered_[i]], 1 - kBelowOne, kBelowOne));
  draw.ordered = distribution_.sample(normal);
  for (std::size_t i = 0; i < ordered_.size(); ++i)
    draw.point[ordered_[i]] = std::clamp(draw.ordered[static_cast<Eigen::Index>(i)], 0.0, kBelowOne);
  return draw;
}

// ---- Trials

// Returns what was drawn for a discrete parameter if that gave its value, or if it does not exist.
double CmaesSearcher::value_of(std::size_t parameter, double drawn, double settled) const {
  if (std::isnan(settled)) return drawn;
  const Parameter& own = observations_.parameters()[parameter];
  if (!own.is_discrete()) return settled;
  const bool is_own = own.cell(std::clamp(drawn, 0.0, kBelowOne)).middle() == settled;
  return is_own ? drawn : settled;
}

void CmaesSearcher::on_trial_add(TrialIndex trial, const Config& config) {
  observations_.on_trial_add(trial, config);
  const auto open = observations_.open().find(trial);
  if (open == observations_.open().end()) return;
  const Draw drawn = draw(trial);
  const Point suggested = observations_.parameters().settled(drawn.point);
  Member member{.run = restarts_.run, .generation = distribution_.generation()};
  for (std::size_t i = 0; i < suggested.size(); ++i) {
    constexpr double rounding = 1e-9;
    const bool is_own = std::isnan(suggested[i]) == std::isnan(open->second[i]) &&
                        !(std::abs(suggested[i] - open->second[i]) > rounding);
    member.is_suggested = member.is_suggested && is_own;
  }
  for (std::size_t i = 0; i < ordered_.size(); ++i)
    member.ordered.push_back(
        value_of(ordered_[i], drawn.ordered[static_cast<Eigen::Index>(i)], open->second[ordered_[i]]));
  members_[trial] = std::move(member);
}

const Observation* CmaesSearcher::find(TrialIndex trial) const {
  const auto& ended = observations_.ended();
  const auto found = std::ranges::lower_bound(ended, trial, {}, &Observation::trial);
  return found == ended.end() || found->trial != trial ? nullptr : &*found;
}

void CmaesSearcher::on_trial_end(TrialIndex trial, TrialStatus status, const Metrics& last_result) {
  observations_.on_trial_end(trial, status, last_result);
  const auto member = members_.find(trial);
  if (member == members_.end()) return;
  if (find(trial) == nullptr || member->second.run != restarts_.run) {
    members_.erase(member);
    return;
  }
  ended_.push_back(trial);
  if (std::ssize(ended_) == population_) end_generation();
}

// ---- Generations

CmaSolution CmaesSearcher::solution_of(const Observation& observation, const Member& member) const {
  CmaSolution solution{.values = Eigen::VectorXd::Map(member.ordered.data(), std::ssize(member.ordered)),
                       .exists = {},
                       .is_current = member.is_suggested && member.generation == distribution_.generation()};
  for (const std::size_t parameter : ordered_) solution.exists.push_back(!std::isnan(observation.point[parameter]));
  return solution;
}

void CmaesSearcher::end_generation() {
  std::vector<const Observation*> best_first;
  for (const TrialIndex trial : ended_) best_first.push_back(find(trial));
  std::ranges::sort(best_first, {}, [](const Observation* one) {
    return std::tuple(one->violation, std::isinf(one->loss()) && one->loss() > 0, one->stopped,
                      one->stopped ? -one->iteration : 0, one->loss(), one->trial);
  });
  std::vector<CmaSolution> solutions;
  std::vector<std::vector<std::optional<std::size_t>>> options;
  for (const Observation* one : best_first) {
    solutions.push_back(solution_of(*one, members_.at(one->trial)));
    auto& own = options.emplace_back();
    for (const std::size_t choice : choices_) {
      const double coordinate = one->point[choice];
      own.push_back(std::isnan(coordinate) ? std::nullopt : std::optional(option_of(choice, coordinate)));
    }
  }
  const CovarianceAdaptationRates rates(std::max<std::size_t>(ordered_.size(), 1), best_first.size());
  const std::vector<double> weights(rates.weights.begin(), rates.weights.begin() + rates.parents);
  if (!ordered_.empty() && !is_narrowest()) distribution_.adapt(solutions, rates);
  if (!choices_.empty()) categories_.adapt(options, weights);
  keep_margins();

  for (const TrialIndex trial : ended_) members_.erase(trial);
  ended_.clear();
  (restarts_.is_small ? restarts_.small_trials : restarts_.large_trials) += population_;
  restarts_.bests.push_back(best_first.front()->loss());
  if (std::ssize(restarts_.bests) > num_compared_generations()) restarts_.bests.erase(restarts_.bests.begin());
  if (options_.restart != Restart::none && has_converged()) begin_anew();
}

// The first and the last cell have no end.
void CmaesSearcher::keep_margins() {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const double alpha = 1 / (num_adapted_ * static_cast<double>(population_));
  for (std::size_t i = 0; i < ordered_.size(); ++i) {
    const Parameter& parameter = observations_.parameters()[ordered_[i]];
    if (!parameter.is_discrete()) continue;
    const auto index = static_cast<Eigen::Index>(i);
    const Parameter::Cell cell = parameter.cell(std::clamp(distribution_.mean()[index], 0.0, kBelowOne));
    const bool is_first = cell.begin <= 0;
    const bool is_last = cell.end >= 1;
    if (is_first && is_last) continue;
    distribution_.keep_margin(index, is_first ? -infinity : cell.begin, is_last ? infinity : cell.end, alpha);
  }
}

// Returns true if the distribution is not to become narrower: its numbers would vanish, and then be NaN.
bool CmaesSearcher::is_narrowest() const {
  constexpr double least_deviation = 1e-9;
  return distribution_.largest_standard_deviation() < least_deviation;
}

// Source of the conditions: Hansen 2016, appendix B.3.
bool CmaesSearcher::has_converged() const {
  if (ordered_.empty()) return false;
  constexpr double highest_condition = 1e14;
  if (is_narrowest()) return true;
  if (distribution_.condition() > highest_condition) return true;
  if (std::ssize(restarts_.bests) < num_compared_generations()) return false;
  const auto [least, most] = std::ranges::minmax_element(restarts_.bests);
  return std::isfinite(*most) && *most - *least <= 1e-12 * std::abs(*most);
}

std::int64_t CmaesSearcher::num_compared_generations() const {
  return 10 + static_cast<std::int64_t>(std::ceil(30 * num_adapted_ / static_cast<double>(population_)));
}

void CmaesSearcher::begin_anew() {
  base::RandomStream random(seed_, static_cast<std::uint32_t>(++restarts_.run), base::Purpose::suggestion,
                            std::uint64_t{1} << 40);
  const std::int64_t first = first_population();
  double sigma = options_.sigma0;
  restarts_.is_small =
      options_.restart == Restart::bipop && restarts_.doublings > 0 && restarts_.small_trials < restarts_.large_trials;
  const std::int64_t large = first << std::min<std::int64_t>(restarts_.doublings, 10);
  if (restarts_.is_small) {
    const double share = std::pow(random.uniform(), 2);
    population_ = static_cast<std::int64_t>(
        static_cast<double>(first) * std::pow(static_cast<double>(large) / 2 / static_cast<double>(first), share));
    population_ = std::max(population_, first);
    sigma *= std::pow(10, -2 * random.uniform());
  } else {
    restarts_.doublings = std::min<std::int64_t>(restarts_.doublings + 1, 10);
    population_ = first << restarts_.doublings;
  }
  restarts_.bests.clear();
  Eigen::VectorXd mean(static_cast<Eigen::Index>(ordered_.size()));
  for (double& coordinate : mean) coordinate = random.uniform();
  distribution_ = CmaDistribution(std::move(mean), sigma);
  categories_ = CategoricalAdaptation(numbers_of_options(observations_.parameters(), choices_), kLeastShare);
  keep_margins();
}

// ---- State

Value CmaesSearcher::save() const {
  State state{.distribution = distribution_.state(),
              .choices = categories_.state(),
              .population = population_,
              .restarts = restarts_,
              .ended = ended_};
  state.members.assign(members_.begin(), members_.end());
  return to_stored(state);
}

void CmaesSearcher::load(const Value& stored) {
  auto state = from_value<State>(stored);
  if (state.distribution.mean.size() != ordered_.size()) throw InvalidArgument("the state has other parameters");
  if (state.population <= std::ssize(state.ended)) throw InvalidArgument("the state has too many trials");
  distribution_ = CmaDistribution(state.distribution);
  categories_.restore(std::move(state.choices));
  population_ = state.population;
  restarts_ = std::move(state.restarts);
  ended_ = std::move(state.ended);
  members_ = {state.members.begin(), state.members.end()};
  const auto is_known = [&](TrialIndex trial) { return members_.contains(trial) && find(trial) != nullptr; };
  const auto fits = [&](const auto& member) { return member.second.ordered.size() == ordered_.size(); };
  if (!std::ranges::all_of(ended_, is_known) || !std::ranges::all_of(members_, fits))
    throw InvalidArgument("the state has other trials");
}

std::string CmaesSearcher::debug_string() const {
  return fmt::format("CMA-ES: generation {}, sigma {:.3g}, {} restarts", distribution_.generation(),
                     distribution_.sigma(), restarts_.run);
}

}  // namespace

std::unique_ptr<Searcher> CMAES::make(const SearcherSetting& setting) const {
  return std::make_unique<CmaesSearcher>(*this, setting);
}

void CMAES::check(const TunerOptions& options, Faults& faults) const {
  faults.unless(std::isfinite(sigma0) && sigma0 > 0, "sigma0", fmt::format("it is {}; it must be above 0", sigma0));
  faults.unless(!popsize || (*popsize >= 2 && *popsize <= 1'000'000), "popsize",
                fmt::format("it is {}; it must be from 2 to 1000000", popsize.value_or(0)));
  check_constraints(constraints, faults);
  if (!x0) return;
  try {
    faults.unless(Parameters(options.param_space).point_of(*x0).has_value(), "x0",
                  fmt::format("{} is no config of param_space: it needs a value for each parameter, in its domain",
                              to_json(x0->value())));
  } catch (const InvalidArgument&) {
    return;  // a Tuner names the fault of the space
  }
}

template class detail::HeldOptionsOf<Searcher, SearcherSetting, CMAES>;

}  // namespace cadre::tune
