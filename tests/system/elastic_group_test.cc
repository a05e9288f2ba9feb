// Worker groups whose size follows the resources, or whose nodes leave.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "base/json.h"
#include "engine/forwarding_engine.h"
#include "store/experiment_store.h"
#include "support/message_of.h"
#include "support/temporary_directory.h"
#include "train/controller.h"
#include "train/options.h"
#include "training.h"
#include "worker/root_engine.h"

namespace cadre::system_tests {
namespace {

using cadre::test_support::content_of;
using cadre::test_support::message_of;
using cadre::test_support::TemporaryDirectory;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

namespace fs = std::filesystem;

// Counts steps, which rank 0 saves, and records the size of the group; ends when `sizes` groups have begun.
Value counts_ranks(const Config& config) {
  const std::int64_t size = train::get_context().get_world_size();
  std::int64_t step = 0;
  if (const auto checkpoint = train::get_checkpoint()) step = read_step(*checkpoint);
  if (rank() == 0) bear_witness("sizes", std::to_string(size) + " from " + std::to_string(step));
  const auto sizes = [] {
    const std::string text = content_of(train::get_context().get_storage() / "sizes");
    return std::ranges::count(text, '\n');
  };
  for (bool more = true; more;) {
    ++step;
    if (rank() == 0) {
      train::report({{"step", step}}, [&](const fs::path& directory) { write_step(directory, step); });
    } else {
      train::report({{"step", step}});
    }
    more = train::broadcast_from_rank_zero(sizes() < config.get<std::int64_t>("sizes")).get<bool>();
  }
  return step;
}

// Returns options in which each worker needs half of the machine.
train::TrainerOptions elastic_options(const fs::path& storage, train::WorkerRange workers, std::int64_t sizes) {
  train::TrainerOptions options = options_in(storage, 1, {{"sizes", sizes}});
  options.scaling_config = {.num_workers = workers,
                            .resources_per_worker = Resources{.cpus = worker::root_resources().cpus / 2},
                            .elastic_resize_monitor_interval = std::chrono::milliseconds(20)};
  return options;
}

TEST(ElasticGroup, IsAsLargeAsTheResourcesAllow) {
  const TemporaryDirectory storage;
  train::Trainer(fn<counts_ranks>, elastic_options(storage.path(), {1, 8}, 1)).fit();
  EXPECT_EQ(content_of(storage / "run/sizes"), "2 from 0\n");
  EXPECT_THAT(message_of<InvalidArgument>(
                  [&] { train::Trainer(fn<counts_ranks>, elastic_options(storage.path(), {3, 8}, 1)).fit(); }),
              HasSubstr("3 workers need more than this machine has"));
  EXPECT_THAT(message_of<InvalidArgument>(
                  [&] { train::Trainer(fn<counts_ranks>, elastic_options(storage.path(), {3, 2}, 1)).fit(); }),
              HasSubstr("from 3 to 2"));
}

// An engine whose resources grow and shrink: they change with every group that begins.
class ChangingEngine final : public engine::ForwardingEngine {
 public:
  ChangingEngine(engine::Engine& inner, fs::path run, std::vector<double> workers)
      : ForwardingEngine(inner), run_(std::move(run)), workers_(std::move(workers)) {}

  Resources resources() const override {
    const std::string text = content_of(run_ / "sizes");
    const auto groups = static_cast<std::size_t>(std::ranges::count(text, '\n'));
    if (groups == 0 && ++looks_ < 3) return {.cpus = 0};
    return {.cpus = workers_.at(std::min(groups, workers_.size() - 1)) * worker::root_resources().cpus / 2};
  }

 private:
  fs::path run_;
  std::vector<double> workers_;
  mutable int looks_ = 0;
};

// Runs a training run in a new directory to its end, on the engine that `make_engine` makes of this machine's.
template <class MakeEngine>
train::RunStatus run_on(const train::Description& description, const fs::path& directory,
                        const MakeEngine& make_engine) {
  fs::create_directory(directory);
  store::ExperimentStore store = store::ExperimentStore::create(
      directory, {"run", description.loop.name, base::to_json(train::describe(description))});
  train::Run run(description.options);
  const std::unique_ptr<engine::Engine> inner = worker::make_root_engine();
  auto engine = make_engine(*inner);
  train::RunConsole console(directory, description.options.run_config, engine.now());
  train::Controller(description, directory, run, store, engine, console, nullptr, {}).run();
  return run.status();
}

TEST(ElasticGroup, FollowsTheResourcesAndLosesNoStep) {
  const TemporaryDirectory storage;
  const fs::path directory = storage / "run";
  const auto make_engine = [&](engine::Engine& inner) { return ChangingEngine(inner, directory, {1, 3, 2}); };
  EXPECT_EQ(
      run_on({.loop = fn<counts_ranks>, .options = elastic_options(storage.path(), {1, 4}, 3)}, directory, make_engine),
      train::RunStatus::finished);
  const train::Result result = train::Result::from_directory(directory);
  EXPECT_EQ(result.attempts, 3) << "and no failure";
  std::vector<std::int64_t> all(static_cast<std::size_t>(result.return_value.get<std::int64_t>()));
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int64_t>(i) + 1;
  EXPECT_EQ(steps_of(result), all);
  std::istringstream sizes(content_of(directory / "sizes"));
  std::vector<std::int64_t> seen;
  std::string from;
  for (std::int64_t size = 0, step = 0; sizes >> size >> from >> step;) seen.push_back(size);
  EXPECT_THAT(seen, ElementsAre(1, 3, 2));
}

// ---- Groups on nodes

// An engine whose only node has left when the group is started that was placed there.
class LeavingEngine final : public engine::ForwardingEngine {
 public:
  using ForwardingEngine::ForwardingEngine;

  std::vector<engine::Node> nodes() const override {
    if (std::exchange(was_asked_, true)) return {};
    return {{.id = 0, .name = "node", .resources = resources()}};
  }

 private:
  mutable bool was_asked_ = false;
};

void reports_in_one_step(const Config&) { train::report({{"step", 1}}); }

// The engine says that such a group's workers were lost with their node; here they go on, so that the run ends.
TEST(GroupOnNodes, IsLeftToTheEngineIfAllNodesHaveJustLeft) {
  const TemporaryDirectory storage;
  const auto make_engine = [](engine::Engine& inner) { return LeavingEngine(inner); };
  EXPECT_EQ(
      run_on({.loop = fn<reports_in_one_step>, .options = options_in(storage.path(), 1)}, storage / "run", make_engine),
      train::RunStatus::finished);
}

}  // namespace
}  // namespace cadre::system_tests
