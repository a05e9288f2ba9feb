#include "cadre/tune/searchers/nsga2.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "base/random.h"
#include "cadre/stored.h"
#include "cadre/tune/tuner.h"
#include "tune/searchers/low_discrepancy_sequence.h"
#include "tune/searchers/observations.h"
#include "tune/searchers/pareto.h"

namespace cadre::tune {
namespace {

// Returns a coordinate between 0 and 1 for any number, folded like light between mirrors.
double folded_into_cube(double coordinate) {
  const double rest = std::abs(coordinate - 2 * std::floor(coordinate / 2));
  return std::min(rest > 1 ? 2 - rest : rest, 1 - 0x1p-53);
}

double sbx_crossover(double a, double b, base::RandomStream& random) {
  constexpr double exponent = 1.0 / (2 + 1);
  const double u = random.uniform();
  const double spread = u < 0.5 ? std::pow(2 * u, exponent) : std::pow(2 * (1 - u), -exponent);
  return ((1 + spread) * a + (1 - spread) * b) / 2;
}

double blx_crossover(double a, double b, base::RandomStream& random) {
  constexpr double alpha = 0.5;
  return a + (b - a) * (-alpha + (1 + 2 * alpha) * random.uniform());
}

// Source: Deb and Goyal, "A combined genetic adaptive search (GeneAS) for engineering design" (1996).
double polynomial_mutation(double coordinate, base::RandomStream& random) {
  constexpr double exponent = 1.0 / (20 + 1);
  const double u = random.uniform();
  return coordinate + (u < 0.5 ? std::pow(2 * u, exponent) - 1 : 1 - std::pow(2 * (1 - u), exponent));
}

class Nsga2Searcher final : public Searcher {
 public:
  Nsga2Searcher(NSGA2 options, const SearcherSetting& setting)
      : options_(std::move(options)),
        seed_(setting.seed),
        observations_(setting, options_.metrics, options_.constraints),
        mutation_prob_(options_.mutation_prob.value_or(1 / static_cast<double>(parameters().size()))) {
    if (parameters().size() <= SobolSequence::kMostDimensions) sequence_.emplace(parameters().size(), seed_);
  }

  std::optional<Config> suggest(TrialIndex trial) const override;
  void on_trial_add(TrialIndex trial, const Config& config) override { observations_.on_trial_add(trial, config); }
  void on_trial_end(TrialIndex trial, TrialStatus status, const Metrics& last_result) override;
  Value save() const override { return to_stored(population_); }
  void load(const Value& state) override;
  std::string debug_string() const override;

 private:
  const Parameters& parameters() const { return observations_.parameters(); }
  Point first_point(TrialIndex trial, base::RandomStream& random) const;
  const Observation& parent(base::RandomStream& random) const;
  Point child(base::RandomStream& random) const;
  double crossed(std::size_t parameter, double a, double b, base::RandomStream& random) const;
  double mutated(std::size_t parameter, double coordinate, base::RandomStream& random) const;
  bool is_known(const Point& point) const;
  const Observation& find(TrialIndex trial) const;
  void sort_population();

  NSGA2 options_;
  std::uint64_t seed_;
  Observations observations_;
  double mutation_prob_;
  std::optional<SobolSequence> sequence_;
  std::vector<TrialIndex> population_ = {};  // the best first
};

// ---- Suggestions

std::optional<Config> Nsga2Searcher::suggest(TrialIndex trial) const {
  base::RandomStream random(seed_, trial, base::Purpose::suggestion);
  if (std::ssize(population_) < options_.population_size)
    return parameters().config_of(parameters().settled(first_point(trial, random)));
  constexpr int most_attempts = 10;
  Point point = child(random);
  for (int attempt = 1; attempt < most_attempts && is_known(point); ++attempt) {
    for (std::size_t i = 0; i < point.size(); ++i) {
      if (std::isnan(point[i]) || random.uniform() < mutation_prob_) point[i] = random.uniform();
    }
    point = parameters().settled(point);
  }
  return parameters().config_of(point);
}

Point Nsga2Searcher::first_point(TrialIndex trial, base::RandomStream& random) const {
  if (sequence_) return sequence_->point(trial);
  Point point(parameters().size());
  std::ranges::generate(point, [&] { return random.uniform(); });
  return point;
}

const Observation& Nsga2Searcher::parent(base::RandomStream& random) const {
  const std::uint64_t first = random.below(population_.size());
  const std::uint64_t second = random.below(population_.size());
  return find(population_[std::min(first, second)]);
}

Point Nsga2Searcher::child(base::RandomStream& random) const {
  Point a = parent(random).point;
  Point b = parent(random).point;
  if (random.uniform() >= options_.crossover_prob) b = a;
  Point point(a.size());
  for (std::size_t i = 0; i < point.size(); ++i) {
    point[i] = crossed(i, a[i], b[i], random);
    const double mutation = random.uniform();
    if (std::isnan(point[i])) {
      point[i] = random.uniform();
    } else if (mutation < mutation_prob_) {
      point[i] = mutated(i, point[i], random);
    }
  }
  return parameters().settled(point);
}

// Returns NaN if neither parent has the parameter.
double Nsga2Searcher::crossed(std::size_t parameter, double a, double b, base::RandomStream& random) const {
  const bool swaps = random.uniform() < options_.swapping_prob;
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) ? b : a;
  if (swaps) std::swap(a, b);
  if (a == b || !parameters()[parameter].is_ordered() || options_.crossover == Crossover::uniform) return a;
  return folded_into_cube(options_.crossover == Crossover::sbx ? sbx_crossover(a, b, random)
                                                               : blx_crossover(a, b, random));
}

// A discrete parameter changes at least to the next value, however far that is.
double Nsga2Searcher::mutated(std::size_t parameter, double coordinate, base::RandomStream& random) const {
  const Parameter& own = parameters()[parameter];
  if (!own.is_ordered()) return random.uniform();
  const double moved = folded_into_cube(polynomial_mutation(coordinate, random));
  const Parameter::Cell cell = own.cell(coordinate);
  if (moved < cell.begin || moved >= cell.end) return moved;
  const bool has_lower = cell.begin > 0;
  const bool has_upper = cell.end < 1;
  if (!has_lower && !has_upper) return coordinate;
  return has_upper && (!has_lower || moved > coordinate) ? cell.end : std::nextafter(cell.begin, 0.0);
}

bool Nsga2Searcher::is_known(const Point& point) const {
  const auto same = [](double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); };
  const auto is_it = [&](const Point& other) { return std::ranges::equal(point, other, same); };
  return std::ranges::any_of(population_, [&](TrialIndex member) { return is_it(find(member).point); }) ||
         std::ranges::any_of(observations_.open(), [&](const auto& open) { return is_it(open.second); });
}

// ---- The population

const Observation& Nsga2Searcher::find(TrialIndex trial) const {
  const auto& ended = observations_.ended();
  const auto found = std::ranges::lower_bound(ended, trial, {}, &Observation::trial);
  if (found == ended.end() || found->trial != trial) throw InvalidArgument("the state is of other trials");
  return *found;
}

void Nsga2Searcher::on_trial_end(TrialIndex trial, TrialStatus status, const Metrics& last_result) {
  const std::size_t before = observations_.ended().size();
  observations_.on_trial_end(trial, status, last_result);
  if (observations_.ended().size() == before) return;
  population_.push_back(trial);
  sort_population();
  if (std::ssize(population_) > options_.population_size) population_.pop_back();
}

// Sorts by rank and then by crowding distance. Trials that break constraints and those that were stopped come after the
// others, in groups of those that are equal in that.
void Nsga2Searcher::sort_population() {
  std::map<std::tuple<double, bool, std::int64_t>, std::vector<TrialIndex>> groups;
  for (const TrialIndex trial : population_) {
    const Observation& one = find(trial);
    groups[{one.violation, one.stopped, one.stopped ? -one.iteration : 0}].push_back(trial);
  }
  population_.clear();
  for (const auto& [key, members] : groups) {
    std::vector<Losses> losses;
    for (const TrialIndex trial : members) losses.push_back(find(trial).losses);
    const std::vector<std::size_t> ranks = non_domination_ranks(losses);
    std::map<std::size_t, std::vector<std::size_t>> fronts;
    for (std::size_t i = 0; i < members.size(); ++i) fronts[ranks[i]].push_back(i);
    for (const auto& [rank, front] : fronts) {
      std::vector<Losses> own;
      for (const std::size_t i : front) own.push_back(losses[i]);
      const std::vector<double> distances = crowding_distances(own);
      std::vector<std::pair<double, TrialIndex>> sorted;
      for (std::size_t i = 0; i < front.size(); ++i) sorted.emplace_back(-distances[i], members[front[i]]);
      std::ranges::sort(sorted);
      for (const auto& [distance, trial] : sorted) population_.push_back(trial);
    }
  }
}

void Nsga2Searcher::load(const Value& state) {
  population_ = from_value<std::vector<TrialIndex>>(state);
  for (const TrialIndex trial : population_) find(trial);
}

std::string Nsga2Searcher::debug_string() const {
  return fmt::format("NSGA-II: {} of {} in the population", population_.size(), options_.population_size);
}

}  // namespace

std::unique_ptr<Searcher> NSGA2::make(const SearcherSetting& setting) const {
  return std::make_unique<Nsga2Searcher>(*this, setting);
}

void NSGA2::check(const TunerOptions&, Faults& faults) const {
  const auto is_probability = [](double value) { return value >= 0 && value <= 1; };
  const auto probability = [&](const char* option, double value) {
    faults.unless(is_probability(value), option, fmt::format("it is {}; it must be from 0 to 1", value));
  };
  faults.unless(population_size >= 2 && population_size <= 100'000, "population_size",
                fmt::format("it is {}; it must be from 2 to 100000", population_size));
  probability("mutation_prob", mutation_prob.value_or(0));
  probability("crossover_prob", crossover_prob);
  probability("swapping_prob", swapping_prob);
  check_objectives(metrics, faults);
  check_constraints(constraints, faults);
}

template class detail::HeldOptionsOf<Searcher, SearcherSetting, NSGA2>;

}  // namespace cadre::tune
