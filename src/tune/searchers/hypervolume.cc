#include "tune/searchers/hypervolume.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <queue>
#include <utility>

namespace cadre::tune {
namespace {

double box(const Losses& losses, const Losses& reference) {
  double volume = 1;
  for (std::size_t i = 0; i < losses.size(); ++i) volume *= reference[i] - losses[i];
  return volume;
}

bool weakly_dominates(const Losses& a, const Losses& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] > b[i]) return false;
  }
  return true;
}

// Returns the vectors that no other one dominates, each once, in lexicographic order.
std::vector<Losses> front_of(std::vector<Losses> losses) {
  std::ranges::sort(losses);
  std::vector<Losses> front;
  for (Losses& one : losses) {
    if (std::ranges::none_of(front, [&](const Losses& other) { return weakly_dominates(other, one); }))
      front.push_back(std::move(one));
  }
  return front;
}

double volume_of_plane_front(const std::vector<Losses>& front, const Losses& reference) {
  double volume = 0;
  double height = reference[1];
  for (const Losses& one : front) {
    volume += (reference[0] - one[0]) * (height - one[1]);
    height = one[1];
  }
  return volume;
}

double added_volume(const Losses& one, const std::vector<Losses>& others, const Losses& reference) {
  std::vector<Losses> common(others);
  for (Losses& other : common) {
    for (std::size_t i = 0; i < one.size(); ++i) other[i] = std::max(other[i], one[i]);
  }
  return box(one, reference) - hypervolume(std::move(common), reference);
}

// Moves losses so that the reference is 1 and the best are 0, which changes no choice. Returns false if they are not
// finite.
bool normalize(std::vector<Losses>& losses) {
  const std::size_t objectives = losses.front().size();
  for (std::size_t i = 0; i < objectives; ++i) {
    const auto at = [i](const Losses& one) { return one[i]; };
    const double best = std::ranges::min(losses, {}, at)[i];
    const double worst = std::ranges::max(losses, {}, at)[i];
    double reference = std::max(1.1 * worst, 0.9 * worst);
    if (reference == 0) reference = 1e-12;
    const double range = reference - best;
    if (!std::isfinite(range)) return false;
    for (Losses& one : losses) one[i] = 1 - (reference - one[i]) / range;
  }
  return true;
}

}  // namespace

// Source: While, Bradstreet and Barone 2012, "A Fast Way of Calculating Exact Hypervolumes".
double hypervolume(std::vector<Losses> losses, const Losses& reference) {
  const std::vector<Losses> front = front_of(std::move(losses));
  if (reference.size() == 2) return volume_of_plane_front(front, reference);
  double volume = 0;
  for (std::size_t i = 0; i < front.size(); ++i)
    volume += added_volume(front[i], {front.begin() + static_cast<std::ptrdiff_t>(i) + 1, front.end()}, reference);
  return volume;
}

// Source: Guerreiro, Fonseca and Paquete 2016, "Greedy Hypervolume Subset Selection in Low Dimensions".
std::vector<std::size_t> select_by_hypervolume(const std::vector<Losses>& losses, std::size_t count) {
  std::vector<std::size_t> chosen;
  std::vector<Losses> normal = losses;
  if (count >= losses.size() || count == 0 || !normalize(normal)) {
    chosen.resize(std::min(count, losses.size()));
    std::iota(chosen.begin(), chosen.end(), 0U);
    return chosen;
  }
  const Losses reference(normal.front().size(), 1.0);
  // Volumes that were added to fewer chosen vectors are upper bounds.
  struct Candidate {
    double volume = 0;
    std::size_t index = 0;
    std::size_t number_chosen = 0;
    bool operator<(const Candidate& other) const {
      return volume != other.volume ? volume < other.volume : index > other.index;
    }
  };
  std::priority_queue<Candidate> candidates;
  for (std::size_t i = 0; i < normal.size(); ++i) candidates.push({box(normal[i], reference), i, 0});
  std::vector<Losses> chosen_losses;
  while (chosen.size() < count) {
    Candidate best = candidates.top();
    candidates.pop();
    if (best.number_chosen == chosen.size()) {
      chosen.push_back(best.index);
      chosen_losses.push_back(normal[best.index]);
      continue;
    }
    best.volume = added_volume(normal[best.index], chosen_losses, reference);
    best.number_chosen = chosen.size();
    candidates.push(best);
  }
  std::ranges::sort(chosen);
  return chosen;
}

std::vector<std::size_t> select_best(const std::vector<Losses>& losses, std::size_t count) {
  std::vector<std::size_t> best(losses.size());
  std::iota(best.begin(), best.end(), 0U);
  if (count >= losses.size()) return best;
  if (losses.front().size() == 1) {
    std::ranges::stable_sort(best, {}, [&](std::size_t index) { return losses[index].front(); });
    best.resize(count);
    return best;
  }
  const std::vector<std::size_t> ranks = non_domination_ranks(losses);
  std::ranges::stable_sort(best, {}, [&](std::size_t index) { return ranks[index]; });
  const auto [begin, end] = std::ranges::equal_range(best, count == 0 ? 0 : ranks[best[count - 1]], {},
                                                     [&](std::size_t index) { return ranks[index]; });
  const std::vector<std::size_t> front(begin, end);
  best.erase(begin, best.end());
  std::vector<Losses> front_losses;
  for (const std::size_t index : front) front_losses.push_back(losses[index]);
  for (const std::size_t index : select_by_hypervolume(front_losses, count - best.size())) best.push_back(front[index]);
  return best;
}

}  // namespace cadre::tune
