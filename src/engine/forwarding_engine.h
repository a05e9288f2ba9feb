// An engine that passes all calls on to another one; derived classes change some of them.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/engine.h"

namespace cadre::engine {

class ForwardingEngine : public Engine {
 public:
  // `inner` must live as long as this object.
  explicit ForwardingEngine(Engine& inner) : inner_(inner) {}
  // An `inner` that is one itself must be given as an Engine&: it would be copied.
  ForwardingEngine(const ForwardingEngine&) = delete;
  ForwardingEngine& operator=(const ForwardingEngine&) = delete;

  std::vector<Node> nodes() const override { return inner_.nodes(); }
  Resources resources() const override { return inner_.resources(); }
  std::filesystem::path directory_of_workers(NodeId node) const override { return inner_.directory_of_workers(node); }
  bool carries_files() const override { return inner_.carries_files(); }
  std::string blind_nodes() const override { return inner_.blind_nodes(); }
  void bring(WorkerId worker, const std::vector<std::string>& files) override { inner_.bring(worker, files); }
  void fetch(NodeId node, const std::string& from, const std::string& to) override { inner_.fetch(node, from, to); }
  void keep_fetched(NodeId node, const std::string& from, const std::string& name) override {
    inner_.keep_fetched(node, from, name);
  }
  std::map<std::string, std::string> use_storage(RunStorage storage) override {
    return inner_.use_storage(std::move(storage));
  }
  bool reaches_storage(NodeId node) const override { return inner_.reaches_storage(node); }
  bool follows_demand() const override { return inner_.follows_demand(); }
  void set_demand(std::vector<Demand> demand) override { inner_.set_demand(std::move(demand)); }
  void start(WorkerId worker, const WorkerSpec& spec) override { inner_.start(worker, spec); }
  void answer(WorkerId worker, const channel::Answer& answer) override { inner_.answer(worker, answer); }
  void reply(WorkerId worker, const channel::StoreReply& reply) override { inner_.reply(worker, reply); }
  void reply(WorkerId worker, const channel::Reply& reply) override { inner_.reply(worker, reply); }
  void kill(WorkerId worker) override { inner_.kill(worker); }
  std::vector<Event> wait(std::optional<std::chrono::nanoseconds> timeout) override { return inner_.wait(timeout); }
  std::string closing() const override { return inner_.closing(); }
  void wake() noexcept override { inner_.wake(); }
  Clock::duration stopped() const override { return inner_.stopped(); }
  Clock::time_point now() const override { return inner_.now(); }
  double wall_seconds() const override { return inner_.wall_seconds(); }

 private:
  Engine& inner_;
};

}  // namespace cadre::engine
