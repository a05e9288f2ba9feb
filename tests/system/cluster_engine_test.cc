// The engine for clusters: the conformance suite over agents on this machine, and what happens to nodes.
#include "engine/cluster/cluster_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/cluster/processes.h"
#include "engine_conformance.h"
#include "local_subject.h"

namespace cadre::system_tests {
namespace {

using engine::cluster::ClusterEngine;
using engine::cluster::ClusterOptions;
using engine::cluster::Processes;
using namespace std::chrono_literals;

struct Nodes {
  std::unique_ptr<ClusterEngine> engine;
  Processes* provider;  // the engine's
};

Nodes make_nodes(std::int64_t count) {
  auto provider = std::make_unique<Processes>();
  Processes* const kept = provider.get();
  return {
      std::make_unique<ClusterEngine>(
          std::move(provider), ClusterOptions{.requests = {{.id = 1, .nodes = count}},
                                              .start = {.command = {std::filesystem::read_symlink("/proc/self/exe")}},
                                              .addresses = {"127.0.0.1"}}),
      kept};
}

class ProcessesSubject {
 public:
  std::unique_ptr<engine::Engine> make_engine() { return make_nodes(2).engine; }
  std::filesystem::path make_directory() { return directories_.make_directory(); }

 private:
  LocalSubject directories_;
};

// Breaks the connection to a node every few milliseconds.
class BreakingEngine final : public engine::Engine {
 public:
  explicit BreakingEngine(std::unique_ptr<ClusterEngine> inner) : inner_(std::move(inner)) {}

  std::vector<engine::Node> nodes() const override { return inner_->nodes(); }
  Resources resources() const override { return inner_->resources(); }
  void start(engine::WorkerId worker, const engine::WorkerSpec& spec) override { inner_->start(worker, spec); }
  void answer(engine::WorkerId worker, const channel::Answer& answer) override { inner_->answer(worker, answer); }
  void reply(engine::WorkerId worker, const channel::StoreReply& reply) override { inner_->reply(worker, reply); }
  void reply(engine::WorkerId worker, const channel::Reply& reply) override { inner_->reply(worker, reply); }
  void kill(engine::WorkerId worker) override { inner_->kill(worker); }
  std::vector<engine::Event> wait(std::optional<std::chrono::nanoseconds> timeout) override {
    const auto end = timeout ? std::optional(now() + *timeout) : std::nullopt;
    for (;;) {
      if (now() >= next_break_) {
        next_break_ = now() + 10ms;
        const auto all = inner_->nodes();
        inner_->break_connection(all.at(++breaks_ % all.size()).id);
      }
      const std::chrono::nanoseconds left = end ? std::min<std::chrono::nanoseconds>(*end - now(), 10ms) : 10ms;
      std::vector<engine::Event> events = inner_->wait(left);
      if (!events.empty() || (end && now() >= *end)) return events;
    }
  }
  void wake() noexcept override { inner_->wake(); }
  Clock::time_point now() const override { return inner_->now(); }
  double wall_seconds() const override { return inner_->wall_seconds(); }

 private:
  std::unique_ptr<ClusterEngine> inner_;
  Clock::time_point next_break_ = {};
  std::size_t breaks_ = 0;
};

class BreakingSubject {
 public:
  std::unique_ptr<engine::Engine> make_engine() { return std::make_unique<BreakingEngine>(make_nodes(2).engine); }
  std::filesystem::path make_directory() { return directories_.make_directory(); }

 private:
  LocalSubject directories_;
};

}  // namespace
}  // namespace cadre::system_tests

namespace cadre::engine::conformance {

INSTANTIATE_TYPED_TEST_SUITE_P(Processes, EngineConformance, system_tests::ProcessesSubject);
INSTANTIATE_TYPED_TEST_SUITE_P(BrokenConnections, EngineConformance, system_tests::BreakingSubject);

}  // namespace cadre::engine::conformance
