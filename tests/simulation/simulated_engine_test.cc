// The simulated engine: the conformance suite that every engine passes, and its virtual time.
#include "engine/simulated/simulated_engine.h"

#include "../system/engine_conformance.h"

namespace cadre::engine::simulated {
namespace {

// A worker that runs a script, as described in engine_conformance.h.
class Script final : public Behaviour {
 public:
  explicit Script(const WorkerSpec& spec) : steps_(spec.assignment.payload.items()) {}

  Step next(const channel::Answer& answer) override {
    constexpr std::chrono::milliseconds after{1};
    if (at_ == steps_.size()) return {after, Step::Return{}};
    const auto& [key, value] = steps_[at_++].dict().at(0);
    if (key == "report") return {after, report(value.dict(), "", answer)};
    if (key == "report_checkpoint") return {after, report({}, value.get<std::string>(), answer)};
    if (key == "throw") return {after, Step::Throw{value.get<std::string>()}};
    if (key == "exit") return {after, Step::Die{{Exit::Kind::code, value.get<int>(), {}}}};
    if (key == "signal") return {after, Step::Die{{Exit::Kind::signal, value.get<int>(), {}}}};
    return {after, Step::Hang{}};
  }

 private:
  channel::Report report(const Dict& entries, const std::string& checkpoint, const channel::Answer& answer) {
    Metrics metrics(entries);
    if (!answer.checkpoint.empty()) metrics.set("committed", answer.checkpoint);
    return {++reports_, std::move(metrics), checkpoint};
  }

  List steps_;
  std::size_t at_ = 0;
  std::int64_t reports_ = 0;
};

class SimulatedSubject {
 public:
  std::unique_ptr<Engine> make_engine() {
    return std::make_unique<SimulatedEngine>(Resources{.cpus = 4},
                                             [](const WorkerSpec& spec) { return std::make_unique<Script>(spec); });
  }
  std::filesystem::path make_directory() { return {}; }
};

}  // namespace
}  // namespace cadre::engine::simulated

namespace cadre::engine::conformance {

INSTANTIATE_TYPED_TEST_SUITE_P(Simulated, EngineConformance, simulated::SimulatedSubject);

}  // namespace cadre::engine::conformance

namespace cadre::engine::simulated {
namespace {

class Sleeper final : public Behaviour {
 public:
  Step next(const channel::Answer&) override { return {std::chrono::hours(24 * 7), Step::Return{}}; }
};

TEST(SimulatedEngine, AWeekPassesAtOnce) {
  SimulatedEngine engine(Resources{}, [](const WorkerSpec&) { return std::make_unique<Sleeper>(); });
  for (WorkerId worker = 1; worker <= 10'000; ++worker) engine.start(worker, {});
  EXPECT_EQ(engine.wait(std::nullopt).size(), 20'000u);
  EXPECT_EQ(engine.now().time_since_epoch(), std::chrono::hours(24 * 7));
  EXPECT_EQ(engine.workers(), 0u);
}

TEST(SimulatedEngine, WorkersOfANodeThatLeavesAreLostBeforeItIsGone) {
  SimulatedEngine engine({{.id = 1}, {.id = 2}}, [](const WorkerSpec&) { return std::make_unique<Sleeper>(); });
  engine.start(7, {.assignment = {}, .node = 1});
  engine.start(8, {.assignment = {}, .node = 2});
  engine.leave(1, std::chrono::hours(1));
  const std::vector<Event> events = engine.wait(std::nullopt);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(std::get<Exited>(events[0]).worker, 7u);
  EXPECT_EQ(std::get<Exited>(events[0]).exit.kind, Exit::Kind::node_lost);
  EXPECT_EQ(std::get<NodeLeft>(events[1]).node, 1u);
  EXPECT_EQ(engine.nodes(), (std::vector<Node>{{.id = 2}}));
  engine.start(9, {.assignment = {}, .node = 1});
  EXPECT_EQ(std::get<Exited>(engine.wait(std::nullopt).at(0)).exit.kind, Exit::Kind::node_lost);
}

TEST(SimulatedEngine, ANodeIsThereOnceItHasJoined) {
  SimulatedEngine engine(std::vector<Node>(), [](const WorkerSpec&) { return std::make_unique<Sleeper>(); });
  engine.join({.id = 3, .resources = {.cpus = 2}}, std::chrono::hours(1));
  EXPECT_EQ(engine.resources().cpus, 0);
  EXPECT_EQ(std::get<NodeJoined>(engine.wait(std::nullopt).at(0)).node.id, 3u);
  EXPECT_EQ(engine.resources().cpus, 2);
}

TEST(SimulatedEngine, WaitingForNothingIsNoticed) {
  SimulatedEngine engine(Resources{}, [](const WorkerSpec&) { return std::make_unique<Sleeper>(); });
  EXPECT_THROW(engine.wait(std::nullopt), std::logic_error);
}

}  // namespace
}  // namespace cadre::engine::simulated
