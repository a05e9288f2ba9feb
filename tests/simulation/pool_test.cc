// Nodes on demand under random work, queues and preemptions: SIMULATION_SEEDS small worlds (default 300), and
// SIMULATION_HOURS (default 6) of up to 10,000 nodes. SIMULATION_FIRST_SEED is the first seed: a failure names the one
// that repeats it.
#include "engine/cluster/pool.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <queue>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/cluster/provider.h"
#include "resources/cluster.h"
#include "seeds.h"

namespace cadre::engine::cluster {
namespace {

using namespace std::chrono_literals;
using resources::Place;
using test_support::number_from_environment;
using test_support::Seeds;
using TimePoint = Pool::TimePoint;
using Duration = TimePoint::duration;

Duration seconds(double amount) { return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(amount)); }

// Describes jobs that need so many workers at once, each with the same needs.
struct Kind {
  std::string name;
  Resources worker;
  std::int64_t workers;  // more than one: a gang, on one node each
  double rate;           // jobs a second
  double mean_s;         // of a job
};

struct Group {
  PoolGroup limits;
  Resources node;
  double mean_queue_s;      // of a request
  double preemptions_rate;  // of each node, a second
  double price = 0;         // of a node for an hour
};

// Nodes, and work for them, in virtual time. Places workers as the controllers do, and checks after each event that
// nothing is placed in part, that no node is there or asked for without need, and that nothing waits in vain.
class PoolWorld {
 public:
  PoolWorld(std::uint64_t seed, std::vector<Group> groups, std::vector<Kind> kinds, Duration time)
      : groups_(std::move(groups)), kinds_(std::move(kinds)), end_(TimePoint() + time), random_(seed) {
    std::vector<PoolGroup> limits;
    for (const Group& group : groups_) limits.push_back(group.limits);
    pool_ = Pool(limits);
    present_.resize(groups_.size());
    idle_.resize(groups_.size());
    waiting_.resize(kinds_.size());
    for (std::size_t kind = 0; kind < kinds_.size(); ++kind) arrive_later(kind);
    for (double at = 0; TimePoint() + seconds(at) < end_; at += drawn(5))
      plan(TimePoint() + seconds(at), [this] { preempt(); });
  }

  void run() {
    while (!happenings_.empty() && !::testing::Test::HasFailure()) {
      const TimePoint next = happenings_.top().at;
      const TimePoint looks = pool_.next().value_or(TimePoint::max());
      pass_until(std::min(next, looks));
      if (next <= looks) {
        const auto act = happenings_.top().act;
        happenings_.pop();
        act();
      }
      turn();
    }
  }

  std::int64_t jobs = 0;  // that have ended
  std::int64_t most_nodes = 0;
  std::int64_t given_back = 0;
  std::int64_t withdrawn = 0;
  std::int64_t preempted = 0;  // nodes with work
  double cost() const { return cost_; }

 private:
  struct Happening {
    TimePoint at;
    std::uint64_t order;
    std::function<void()> act;
    bool operator>(const Happening& other) const { return std::pair(at, order) > std::pair(other.at, other.order); }
  };
  struct Job {
    std::size_t kind;
    std::vector<Place> places;
  };
  struct NodeState {
    std::size_t group;
    std::set<std::uint64_t> jobs = {};
  };

  void pass_until(TimePoint time) {
    const double hours = std::chrono::duration<double, std::ratio<3600>>(time - now_).count();
    for (std::size_t group = 0; group < groups_.size(); ++group)
      cost_ += hours * groups_[group].price * static_cast<double>(present_[group]);
    now_ = time;
  }
  double drawn(double mean) { return std::exponential_distribution(1 / mean)(random_); }
  void plan(TimePoint at, std::function<void()> act) { happenings_.push({at, ++order_, std::move(act)}); }

  void arrive_later(std::size_t kind) {
    const TimePoint at = now_ + seconds(drawn(1 / kinds_[kind].rate));
    if (at >= end_) return;
    plan(at, [this, kind] {
      waiting_[kind].push_back(now_);
      arrive_later(kind);
    });
  }

  // ---- What the controllers do

  void place() {
    for (std::size_t kind = 0; kind < kinds_.size(); ++kind) {
      const std::vector<Resources> bundles(static_cast<std::size_t>(kinds_[kind].workers), kinds_[kind].worker);
      while (!waiting_[kind].empty()) {
        const auto places = cluster_.acquire_all(bundles, PlacementStrategy::pack);
        if (!places) break;
        waiting_[kind].pop_front();
        begin(kind, *places);
      }
    }
  }

  void begin(std::size_t kind, const std::vector<Place>& places) {
    const std::uint64_t job = ++last_job_;
    running_[job] = {kind, places};
    for (const Place& place : places) {
      NodeState& node = nodes_.at(place.node);
      if (node.jobs.empty()) idle_[node.group].erase(place.node);
      node.jobs.insert(job);
    }
    plan(now_ + seconds(drawn(kinds_[kind].mean_s)), [this, job] { end_job(job, true); });
  }

  void end_job(std::uint64_t number, bool has_finished) {
    const auto job = running_.extract(number);
    if (job.empty()) return;  // it was lost with a node
    for (const Place& place : job.mapped().places) {
      cluster_.release(kinds_[job.mapped().kind].worker, place);
      const auto node = nodes_.find(place.node);
      if (node == nodes_.end()) continue;
      if (node->second.jobs.erase(number) != 0 && node->second.jobs.empty())
        idle_[node->second.group][place.node] = now_;
    }
    if (has_finished) {
      ++jobs;
    } else {
      waiting_[job.mapped().kind].push_front(now_);
    }
  }

  std::vector<Demand> demand() const {
    std::vector<Demand> demand;
    for (std::size_t kind = 0; kind < kinds_.size(); ++kind) {
      std::int64_t workers = std::ssize(waiting_[kind]) * kinds_[kind].workers;
      if (workers > 0 && kinds_[kind].workers > 1) workers = std::max<std::int64_t>(workers - room_for(kind), 1);
      if (workers > 0) demand.push_back({kinds_[kind].worker, workers});
    }
    return demand;
  }

  // Returns how many workers of a gang have room already. In large worlds a worker needs a whole node.
  std::int64_t room_for(std::size_t kind) const {
    std::int64_t count = 0;
    if (nodes_.size() < 100) {
      for (resources::Cluster room = cluster_; room.acquire(kinds_[kind].worker);) ++count;
      return count;
    }
    for (std::size_t group = 0; group < groups_.size(); ++group) {
      if (resources::ResourceLedger(groups_[group].node).is_free(kinds_[kind].worker))
        count += std::ssize(idle_[group]);
    }
    return count;
  }

  // ---- What the engine does

  void turn() {
    place();
    pool_.set_demand(demand());
    std::vector<PoolNodes> nodes;
    for (std::size_t group = 0; group < groups_.size(); ++group) {
      nodes.push_back({.there = present_[group], .coming = std::ssize(coming_[group])});
      for (auto idle = idle_[group].rbegin(); idle != idle_[group].rend(); ++idle)
        nodes.back().idle.emplace_back(*idle);
    }
    const std::vector<PoolOrder> orders = pool_.decide(nodes, now_);
    for (std::size_t group = 0; group < groups_.size(); ++group) {
      for (std::int64_t i = 0; i < orders[group].request; ++i) request(group);
      for (std::int64_t i = 0; i < orders[group].withdraw; ++i) {
        ASSERT_FALSE(coming_[group].empty());
        coming_[group].erase(std::prev(coming_[group].end()));
        ++withdrawn;
      }
      for (const NodeId node : orders[group].give_back) {
        ASSERT_TRUE(nodes_.at(node).jobs.empty());
        remove(node);
        ++given_back;
      }
    }
    check();
  }

  void request(std::size_t group) {
    const std::uint64_t number = ++last_request_;
    coming_[group].insert(number);
    plan(now_ + seconds(drawn(groups_[group].mean_queue_s)), [this, group, number] {
      if (coming_[group].erase(number) != 0) join(group);
    });
  }

  void join(std::size_t group) {
    const NodeId id = ++last_node_;
    cluster_.add({.id = id, .name = "n", .resources = groups_[group].node});
    nodes_[id] = {group};
    idle_[group][id] = now_;
    ++present_[group];
    pool_.saw(group, groups_[group].node);
  }

  void remove(NodeId id) {
    const std::size_t group = nodes_.at(id).group;
    cluster_.remove(id);
    idle_[group].erase(id);
    nodes_.erase(id);
    --present_[group];
  }

  void preempt() {
    if (nodes_.empty()) return;
    auto victim = nodes_.lower_bound(static_cast<NodeId>(random_() % (last_node_ + 1)));
    if (victim == nodes_.end()) victim = nodes_.begin();
    if (groups_[victim->second.group].preemptions_rate == 0) return;
    preempted += victim->second.jobs.empty() ? 0 : 1;
    const std::set<std::uint64_t> lost = victim->second.jobs;
    remove(victim->first);
    for (const std::uint64_t job : lost) end_job(job, false);
  }

  // ---- What must hold

  void check() {
    most_nodes = std::max(most_nodes, std::ssize(nodes_));
    bool is_anything_waiting = false;
    for (std::size_t kind = 0; kind < kinds_.size(); ++kind) is_anything_waiting |= !waiting_[kind].empty();
    if (is_anything_waiting || was_anything_waiting_) demanded_ = now_;
    was_anything_waiting_ = is_anything_waiting;
    for (std::size_t group = 0; group < groups_.size(); ++group) {
      const PoolGroup& limits = groups_[group].limits;
      ASSERT_LE(present_[group] + std::ssize(coming_[group]), limits.most) << limits.name;
      if (now_ - demanded_ > 500ms)
        ASSERT_LE(std::ssize(coming_[group]), limits.least) << limits.name << ": nothing waits for those in the queue";
      if (now_ - demanded_ > limits.linger) {
        ASSERT_LE(
            std::ssize(idle_[group]),
            std::max<std::int64_t>(
                limits.least, std::ranges::count_if(
                                  idle_[group], [&](const auto& idle) { return now_ - idle.second < limits.linger; })))
            << limits.name << ": nodes stay without work";
      }
    }
    // Nodes are on their way for whatever waits, unless there are no more.
    for (std::size_t kind = 0; kind < kinds_.size(); ++kind) {
      bool is_helped = waiting_[kind].empty();
      for (std::size_t group = 0; group < groups_.size(); ++group) {
        if (resources::ResourceLedger(groups_[group].node).is_free(kinds_[kind].worker))
          is_helped |= !coming_[group].empty() || present_[group] == groups_[group].limits.most;
      }
      if (is_helped) {
        in_vain_since_.erase(kind);
      } else {
        ASSERT_LE(now_ - in_vain_since_.try_emplace(kind, now_).first->second, 1s) << kinds_[kind].name;
      }
    }
  }

  std::vector<Group> groups_;
  std::vector<Kind> kinds_;
  TimePoint now_ = {};
  TimePoint end_;  // no job arrives after that
  std::mt19937_64 random_;
  Pool pool_;
  resources::Cluster cluster_{std::vector<Node>()};
  std::priority_queue<Happening, std::vector<Happening>, std::greater<>> happenings_ = {};
  std::vector<std::deque<TimePoint>> waiting_ = {};  // by kind
  std::map<std::uint64_t, Job> running_ = {};
  std::map<NodeId, NodeState> nodes_ = {};
  std::vector<std::int64_t> present_ = {};              // by group, as the next two
  std::vector<std::map<NodeId, TimePoint>> idle_ = {};  // since when
  std::map<std::size_t, std::set<std::uint64_t>> coming_ = {};
  TimePoint demanded_ = {};  // until when something waited
  bool was_anything_waiting_ = false;
  std::map<std::size_t, TimePoint> in_vain_since_ = {};  // kinds that wait for what nobody has asked for
  double cost_ = 0;
  std::uint64_t order_ = 0;
  std::uint64_t last_job_ = 0;
  std::uint64_t last_request_ = 0;
  NodeId last_node_ = 0;
};

Resources node(const std::string& group, double cpus, double gpus = 0, const std::string& type = "") {
  return {.cpus = cpus, .gpus = gpus, .accelerator_type = type, .labels = {{group_label, group}}};
}

TEST(PoolSimulation, SmallWorlds) {
  const Seeds seeds(300, 1);
  std::int64_t jobs = 0;
  std::int64_t withdrawn = 0;
  std::int64_t preempted = 0;
  for (std::uint64_t seed = seeds.first(); seed < seeds.first() + seeds.count(); ++seed) {
    SCOPED_TRACE(fmt::format("SIMULATION_FIRST_SEED={}", seed));
    std::mt19937_64 random(seed);
    const auto pick = [&](std::initializer_list<double> of) { return *(of.begin() + random() % of.size()); };
    std::vector<Group> groups;
    for (const std::string name : {"a", "b"}) {
      const double cpus = pick({1, 2, 4});
      groups.push_back({{.name = name,
                         .least = static_cast<std::int64_t>(random() % 2),
                         .most = static_cast<std::int64_t>(3 + random() % 5),
                         .linger = seconds(pick({0, 5, 60})),
                         .cpus = random() % 2 == 0 ? cpus : 0,
                         .price = pick({0, 1, 3})},
                        node(name, cpus),
                        pick({0.1, 10, 100}),
                        pick({0, 1})});
    }
    PoolWorld world(seed, groups,
                    {{"any", {.cpus = 1}, 1, pick({0.01, 0.2}), pick({1, 30})},
                     {"on a", {.cpus = 1, .labels = {{group_label, "a"}}}, 1, 0.02, pick({1, 100})},
                     {"gang", {.cpus = 1, .labels = {{group_label, "b"}}}, 3, 0.01, 60}},
                    1h);
    world.run();
    jobs += world.jobs;
    withdrawn += world.withdrawn;
    preempted += world.preempted;
    if (HasFailure()) return;
  }
  if (!seeds.are_many()) return;
  EXPECT_GT(jobs, 0);
  EXPECT_GT(withdrawn, 0);
  EXPECT_GT(preempted, 0);
}

TEST(PoolSimulation, WorkCostsLessWhereThePricesAreKnown) {
  const auto cost_of = [](bool is_known) {
    const auto group = [&](const std::string& name, std::int64_t most, double queue_s, double preemptions,
                           double price) {
      const PoolGroup limits{.name = name, .most = most, .linger = 60s, .cpus = 8, .price = is_known ? price : 0};
      return Group{limits, node(name, 8), queue_s, preemptions, price};
    };
    PoolWorld world(number_from_environment("SIMULATION_FIRST_SEED", 1),
                    {group("dear", 40, 5, 0, 3), group("spot", 30, 60, 1, 1)},
                    {{"trial", {.cpus = 2}, 1, 1.6, 60}, {"large", {.cpus = 8}, 1, 0.07, 60}}, 1h);
    world.run();
    EXPECT_GT(world.jobs, 500);
    if (is_known) EXPECT_GT(world.preempted, 10);
    return world.cost();
  };
  EXPECT_LT(cost_of(true), 0.7 * cost_of(false));
}

TEST(PoolSimulation, HoursOfTenThousandNodes) {
  const auto hours = static_cast<std::int64_t>(number_from_environment("SIMULATION_HOURS", 6));
  PoolWorld world(number_from_environment("SIMULATION_FIRST_SEED", 1),
                  {{{.name = "spot", .most = 6000, .linger = 60s, .cpus = 8}, node("spot", 8), 60, 1},
                   {{.name = "dear", .most = 2000, .linger = 60s, .cpus = 8}, node("dear", 8), 5, 0},
                   {{.name = "a100", .most = 1500, .linger = 300s, .gpus = 4, .accelerator_type = "A100"},
                    node("a100", 32, 4, "A100"),
                    600,
                    0},
                   {{.name = "a10", .most = 500, .linger = 30s, .gpus = 1, .accelerator_type = "A10G"},
                    node("a10", 8, 1, "A10G"),
                    30,
                    0}},
                  {{"trial", {.cpus = 2, .labels = {{group_label, "in(spot,dear)"}}}, 1, 1.5, 10'000},
                   {"short", {.cpus = 1, .labels = {{group_label, "in(spot,dear)"}}}, 1, 5, 60},
                   {"gang", {.cpus = 8, .gpus = 4, .accelerator_type = "A100"}, 4, 0.01, 3600},
                   {"validation", {.cpus = 1, .gpus = 1, .accelerator_type = "A10G"}, 1, 0.5, 300}},
                  std::chrono::hours(hours));
  world.run();
  EXPECT_GT(world.jobs, 20'000 * hours);
  EXPECT_GT(world.most_nodes, 3000);
  EXPECT_GT(world.given_back, 3000);
  EXPECT_GT(world.preempted, 500);
}

}  // namespace
}  // namespace cadre::engine::cluster
