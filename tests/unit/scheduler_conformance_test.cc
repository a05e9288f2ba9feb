// Every scheduler that comes with Cadre keeps the contract of cadre/tune/scheduler.h, in experiments of random events.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <limits>
#include <random>

#include "base/json.h"
#include "cadre/tune/schedulers.h"
#include "cadre/tune/tuner.h"
#include "tune/experiment.h"
#include "tune/held_options.h"

namespace cadre::tune {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

struct Subject {
  std::string name;
  AnyScheduler (*make)(Mode mode);
};

// Schedulers with options by which a few results reach all their stages.
const std::vector<Subject>& subjects() {
  static const std::vector<Subject> all{
      {"FIFO", [](Mode) -> AnyScheduler { return FIFO{}; }},
      {"ASHA",
       [](Mode mode) -> AnyScheduler {
         return ASHAScheduler{.metric = "score", .mode = mode, .max_t = 12, .reduction_factor = 2, .brackets = 2};
       }},
      {"Promotion",
       [](Mode mode) -> AnyScheduler {
         return ASHAScheduler{.metric = "score", .mode = mode, .max_t = 12, .reduction_factor = 2, .promote = true};
       }},
      {"HyperBand",
       [](Mode mode) -> AnyScheduler {
         return HyperBandScheduler{.metric = "score", .mode = mode, .max_t = 8, .reduction_factor = 2};
       }},
      {"Median",
       [](Mode mode) -> AnyScheduler {
         return MedianStoppingRule{.time_attr = "training_iteration",
                                   .metric = "score",
                                   .mode = mode,
                                   .grace_period = 2,
                                   .min_samples_required = 2};
       }},
      {"SoftMedian",
       [](Mode mode) -> AnyScheduler {
         return MedianStoppingRule{.time_attr = "training_iteration",
                                   .metric = "score",
                                   .mode = mode,
                                   .grace_period = 1,
                                   .min_samples_required = 2,
                                   .min_time_slice = 2,
                                   .hard_stop = false};
       }},
      {"PopulationBasedTraining",
       [](Mode mode) -> AnyScheduler {
         return PopulationBasedTraining{.time_attr = "training_iteration",
                                        .metric = "score",
                                        .mode = mode,
                                        .perturbation_interval = 2,
                                        .hyperparam_mutations = {{"lr", uniform(0.001, 0.5)}},
                                        .require_attrs = false};
       }},
      {"Synchronous",
       [](Mode mode) -> AnyScheduler {
         return PopulationBasedTraining{.time_attr = "training_iteration",
                                        .metric = "score",
                                        .mode = mode,
                                        .perturbation_interval = 2,
                                        .hyperparam_mutations = {{"momentum", {0.8, 0.9, 0.99}}},
                                        .require_attrs = false,
                                        .synch = true,
                                        .synch_deadline = 1};
       }},
      {"PB2",
       [](Mode mode) -> AnyScheduler {
         return PB2{.time_attr = "training_iteration",
                    .metric = "score",
                    .mode = mode,
                    .perturbation_interval = 2,
                    .hyperparam_bounds = {{"lr", uniform(0.001, 0.5)}},
                    .require_attrs = false};
       }},
      {"MultipleFrequenciesPBT",
       [](Mode mode) -> AnyScheduler {
         return MultipleFrequenciesPBT{.time_attr = "training_iteration",
                                       .metric = "score",
                                       .mode = mode,
                                       .perturbation_interval = 2,
                                       .interval_factors = {1, 2},
                                       .hyperparam_mutations = {{"lr", uniform(0.001, 0.5)}},
                                       .require_attrs = false};
       }},
      {"Replay",
       [](Mode) -> AnyScheduler {
         const Config first{{"lr", 0.1}, {"momentum", 0.9}};
         const Config second{{"lr", 0.2}, {"momentum", 0.8}};
         return PopulationBasedTrainingReplay{
             .schedule = PolicySchedule{.initial_config = first, .changes = {{3, second}, {7, first}}}};
       }},
      {"ResourceChanging",
       [](Mode mode) -> AnyScheduler {
         return ResourceChangingScheduler{
             .scheduler = ASHAScheduler{.metric = "score", .mode = mode, .max_t = 12, .reduction_factor = 2}};
       }},
      {"ResourcesToTopJob", [](Mode mode) -> AnyScheduler {
         return ResourceChangingScheduler{
             .scheduler = FIFO{},
             .resources_allocation = DistributeResourcesToTopJob{.metric = "score", .mode = mode},
             .restart = true};
       }}};
  return all;
}

TunerOptions options_of(const Subject& subject, Mode mode) {
  TunerOptions options{
      .param_space = {{"lr", uniform(0.001, 0.5)}, {"momentum", uniform(0.5, 1)}},
      .tune_config = {.num_samples = subject.name == "Replay" ? 1 : 8, .scheduler = subject.make(mode), .seed = 7},
      .run_config = {.stop = {{"training_iteration", 14}}}};
  options.run_config.failure_config.max_failures = 1;
  return options;
}

// The state of an experiment, as a store has it.
struct Snapshot {
  std::string state;
  std::vector<std::string> trials;
};

// An experiment with random results, checkpoints and failures, whose slots, faults and orders follow from a seed.
class RandomExperiment {
 public:
  RandomExperiment(const TunerOptions& options, std::uint64_t seed, double sign = 1)
      : experiment_(Trainable("f"), options), random_(seed), sign_(sign) {
    feed(ControllerStarted{{.cpus = static_cast<double>(1 + random_() % 8)}});
  }

  // Feeds the next event; returns false at the end.
  bool step() {
    if (experiment_.finished()) return false;
    if (!due_.empty() && random_() % 4 == 0) {
      const Timer timer = due_.front();
      due_.pop_front();
      if (experiment_.awaits(timer)) feed(TimerFired{timer});
      return true;
    }
    std::vector<const Trial*> alive;
    for (const Trial& trial : experiment_.trials()) {
      if (runs_user_code(trial.worker) || trial.worker == WorkerState::stopping) alive.push_back(&trial);
    }
    if (alive.empty()) return !due_.empty();
    act(*alive[random_() % alive.size()]);
    return true;
  }

  // Begins another controller, with other options.
  void restart(const Extension& extension) {
    feed(ControllerStarted{.resources = {.cpus = static_cast<double>(1 + random_() % 8)}, .extension = extension});
  }

  const std::vector<Event>& events() const { return events_; }
  const std::vector<std::string>& decisions() const { return decisions_; }  // of each event
  const Experiment& experiment() const { return experiment_; }
  const std::vector<Snapshot>& snapshots() const { return snapshots_; }  // after each event

  // Returns the decisions of an event, with all that is recorded of them.
  static std::string decisions_in(const Actions& actions) {
    std::string text;
    for (const Action& action : actions) {
      if (const auto* made = std::get_if<RecordDecision>(&action))
        text +=
            std::string(to_string(made->kind)) + " " + std::to_string(made->trial) + " " + to_json(made->data) + "\n";
    }
    return text;
  }

 private:
  void feed(Event event) {
    Actions actions;
    experiment_.handle(event, actions);
    events_.push_back(std::move(event));
    decisions_.push_back(decisions_in(actions));
    for (const Action& action : actions) {
      const auto* started = std::get_if<StartTimer>(&action);
      if (started != nullptr &&
          (started->timer.kind == Timer::Kind::retry || started->timer.kind == Timer::Kind::barrier))
        due_.push_back(started->timer);
    }
    Snapshot& snapshot = snapshots_.emplace_back(Snapshot{to_json(experiment_.save()), {}});
    for (const Trial& trial : experiment_.trials())
      snapshot.trials.push_back(to_json(experiment_.save_trial(trial.index)));
  }

  void end_worker(TrialIndex trial, std::int64_t attempt) { feed(WorkerEnded{trial, attempt, {}}); }

  // Lets a trial's worker do something.
  void act(const Trial& trial) {
    const TrialIndex index = trial.index;
    const std::int64_t attempt = trial.attempt;
    if (trial.worker == WorkerState::stopping) {
      feed(FunctionReturned{index, attempt});
      return end_worker(index, attempt);
    }
    if (trial.worker == WorkerState::saving) {
      feed(ResultReported{index, attempt, {trial.step, trial.last_result, ".reporting"}});
      return;
    }
    switch (random_() % 24) {
      case 0:
        feed(FunctionThrew{index, attempt, "a fault"});
        return end_worker(index, attempt);
      case 1:
        feed(FunctionReturned{index, attempt});
        return end_worker(index, attempt);
      case 2:
        return feed(WorkerEnded{index, attempt, {engine::Exit::Kind::signal, 9, {}}});
      default:
        report(trial);
    }
  }

  // Reports a score of few, so that there are ties, after one to three units of time.
  void report(const Trial& trial) {
    const double before = trial.last_result.number("training_iteration").value_or(0);
    Metrics metrics{{"training_iteration", before + static_cast<double>(1 + random_() % 3)}};
    const auto kind = random_() % 20;
    if (kind == 0) metrics = {};  // no time
    if (kind != 1) metrics.set("score", kind == 2 ? kNan : sign_ * static_cast<double>(random_() % 8) / 8);
    const bool saves = random_() % 3 == 0;
    const bool offers = !saves && random_() % 2 == 0;
    feed(ResultReported{trial.index,
                        trial.attempt,
                        {.step = trial.step + 1,
                         .metrics = std::move(metrics),
                         .checkpoint = saves ? ".reporting" : "",
                         .offers_checkpoint = offers}});
  }

  Experiment experiment_;
  std::mt19937_64 random_;
  double sign_;
  std::vector<Event> events_ = {};
  std::vector<std::string> decisions_ = {};
  std::deque<Timer> due_ = {};
  std::vector<Snapshot> snapshots_ = {};
};

// Restores the experiment at each of its events, and compares what it decides after that.
void check_restores(const RandomExperiment& random, const TunerOptions& options) {
  constexpr std::size_t kAfter = 20;  // events that a restored experiment is compared for
  const std::vector<Snapshot>& snapshots = random.snapshots();
  for (std::size_t at = 0; at + 1 < snapshots.size(); ++at) {
    Experiment restored(Trainable("f"), options);
    restored.load(base::parse_json(snapshots[at].state, "the snapshot"),
                  [&](TrialIndex trial) { return base::parse_json(snapshots[at].trials.at(trial), "a trial"); });
    for (std::size_t next = at + 1; next < std::min(random.events().size(), at + 1 + kAfter); ++next) {
      Actions actions;
      restored.handle(random.events()[next], actions);
      ASSERT_EQ(RandomExperiment::decisions_in(actions), random.decisions()[next])
          << "event " << next << " after a restore at event " << at;
    }
  }
}

class SchedulerConformance : public ::testing::TestWithParam<Subject> {};

TEST_P(SchedulerConformance, EveryTrialComesToAnEnd) {
  std::map<TrialStatus, int> ends;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    RandomExperiment random(options_of(GetParam(), Mode::max), seed);
    int steps = 0;
    while (steps < 20'000 && random.step()) ++steps;
    ASSERT_TRUE(random.experiment().finished());
    for (const Trial& trial : random.experiment().trials()) ++ends[trial.status];
  }
  EXPECT_GT(ends[TrialStatus::terminated], 0);
  EXPECT_GT(ends[TrialStatus::error], 0);
}

TEST_P(SchedulerConformance, ARestoreAtAnyEventDecidesTheSame) {
  const TunerOptions options = options_of(GetParam(), Mode::max);
  for (std::uint64_t seed = 0; seed < 2; ++seed) {
    SCOPED_TRACE(seed);
    RandomExperiment random(options, seed);
    while (random.events().size() < 150 && random.step()) {
    }
    check_restores(random, options);
  }
}

// Trials are running, paused, saving, failed and ended when the other scheduler takes over.
TEST_P(SchedulerConformance, AnotherSchedulerTakesOverAtAnyTime) {
  const TunerOptions options = options_of(GetParam(), Mode::max);
  for (std::uint64_t seed = 0; seed < subjects().size(); ++seed) {
    const Subject& other = subjects()[seed];
    if ((other.name == "Replay") != (GetParam().name == "Replay")) continue;  // it has one trial
    SCOPED_TRACE(other.name);
    RandomExperiment random(options, seed);
    for (std::uint64_t i = 0; i < 10 + 15 * seed && random.step(); ++i) {
    }
    random.restart({.scheduler = other.make(Mode::max)});
    int steps = 0;
    while (steps < 20'000 && random.step()) ++steps;
    ASSERT_TRUE(random.experiment().finished());
    if (seed % 4 == 0) check_restores(random, options);
  }
}

TEST_P(SchedulerConformance, TrialsGoOnUnderAnotherStop) {
  const TunerOptions options = options_of(GetParam(), Mode::max);
  int longer = 0;
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    SCOPED_TRACE(seed);
    RandomExperiment random(options, seed);
    const std::uint64_t until = seed % 2 == 0 ? 20'000 : 60;  // the end, or before
    for (std::uint64_t i = 0; i < until && random.step(); ++i) {
    }
    const bool is_replay = GetParam().name == "Replay";
    random.restart({.num_samples = is_replay ? 1 : 12, .stop = Stop{{"training_iteration", at_least(24)}}});
    int steps = 0;
    while (steps < 20'000 && random.step()) ++steps;
    ASSERT_TRUE(random.experiment().finished());
    EXPECT_EQ(random.experiment().trials().size(), is_replay ? 1U : 12U);
    longer += static_cast<int>(std::ranges::count_if(random.experiment().trials(), [](const Trial& trial) {
      return trial.last_result.number("training_iteration").value_or(0) >= 24;
    }));
    if (seed < 2) check_restores(random, options);
  }
  const std::set<std::string> with_max_t{"ASHA", "Promotion", "HyperBand", "ResourceChanging"};
  EXPECT_EQ(longer > 0, !with_max_t.contains(GetParam().name));
}

TEST_P(SchedulerConformance, LargeIsGoodIfTheModeSaysSo) {
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    SCOPED_TRACE(seed);
    RandomExperiment large(options_of(GetParam(), Mode::max), seed);
    RandomExperiment small(options_of(GetParam(), Mode::min), seed, -1);
    for (int i = 0; i < 300; ++i) {
      const bool goes_on = large.step();
      ASSERT_EQ(small.step(), goes_on);
      if (!goes_on) break;
    }
    ASSERT_EQ(large.decisions(), small.decisions());
  }
}

INSTANTIATE_TEST_SUITE_P(All, SchedulerConformance, ::testing::ValuesIn(subjects()),
                         [](const auto& info) { return info.param.name; });

// A scheduler that is forgotten above is one that nobody tests.
TEST(SchedulerConformance, EverySchedulerIsTested) {
  std::set<std::string> tested;
  for (const Subject& subject : subjects()) tested.insert(std::string(subject.make(Mode::max).name()));
  for (const std::string& name : option_types<Scheduler, SchedulerSetting>().names()) {
    // These belong to other tests.
    if (name == "StopBelow" || name == "LastFirst" || name == "HostScheduler") continue;
    EXPECT_TRUE(tested.contains(name)) << name;
  }
}

}  // namespace
}  // namespace cadre::tune
