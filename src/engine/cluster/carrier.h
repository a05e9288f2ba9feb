// The engine of one run whose directory the nodes do not see: carries what workers need to their nodes, over the
// connection of the agent, and what they report and print back. So the run's directory has what it has on one machine.
//
// A node that reaches the storage where the run is published stores there what its workers report, and loads from there
// what is there only. If it fails there, it does without the storage for a while.
//
// A node gets what several of its workers need once, and keeps the latest two checkpoints of each that runs there, and
// those that it has asked for until a report of it is answered.
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/cluster/carried_files.h"
#include "engine/cluster/cluster_engine.h"
#include "engine/cluster/downloads.h"
#include "engine/cluster/lease.h"
#include "engine/cluster/storage_reach.h"
#include "engine/forwarding_engine.h"

namespace cadre::engine::cluster {

// Holds back calls to a worker until its node has what it needs for them, and what a worker says from a report on until
// the reported directory is here. Other workers do not wait.
class Carrier final : public ForwardingEngine, private FilePeer {
 public:
  // `lease`: of `nodes`, for the run in `directory`.
  Carrier(std::unique_ptr<Lease> lease, ClusterEngine& nodes, std::filesystem::path directory);
  ~Carrier() override;
  Carrier(const Carrier&) = delete;
  Carrier& operator=(const Carrier&) = delete;

  std::filesystem::path directory_of_workers(NodeId node) const override { return nodes_.own_directory_of(node); }
  bool carries_files() const override { return true; }
  std::vector<Node> nodes() const override;
  std::map<std::string, std::string> use_storage(RunStorage storage) override;
  bool reaches_storage(NodeId node) const override { return reach_ && reach_->is_reached(node, Clock::now()); }
  void bring(WorkerId worker, const std::vector<std::string>& files) override;
  void fetch(NodeId node, const std::string& from, const std::string& to) override;
  void keep_fetched(NodeId node, const std::string& from, const std::string& name) override;
  void start(WorkerId worker, const WorkerSpec& spec) override;
  void answer(WorkerId worker, const channel::Answer& answer) override;
  void reply(WorkerId worker, const channel::StoreReply& reply) override;
  void reply(WorkerId worker, const channel::Reply& reply) override;
  void kill(WorkerId worker) override;
  std::vector<Event> wait(std::optional<std::chrono::nanoseconds> timeout) override;

 private:
  // A call of the engine that waits for files.
  struct Call {
    std::set<std::string> needs;
    std::function<void()> make;
    std::function<void(const std::string& fault)> make_without = {};  // empty: without them the worker is killed
  };
  struct Worker {
    NodeId node = 0;
    std::string directory = {};        // below that of its node
    bool is_started = false;           // true: its agent was told
    std::set<std::string> needs = {};  // of the next call
    std::deque<Call> calls = {};
    std::deque<Event> said = {};  // waits for what is fetched
    std::string fetched = {};     // on its way here; empty: nothing is
    std::string reported = {};    // was fetched last, and has the name on its node still; empty: nothing
    KnownFile reported_here = {};
    std::deque<std::string> holds = {};  // checkpoints that its node keeps for it, the latest one last
    std::string fault = {};              // why it is killed
  };
  using TimePoint = Clock::time_point;
  // Something that is fetched.
  struct Receiver {
    std::string to = {};
    bool is_of_report = false;                 // false: the controller has asked for it
    std::unique_ptr<FileReceiver> files = {};  // empty: there was no space for it
    TimePoint retry_at = TimePoint::max();     // then, once its last piece has come
  };
  // Something that its node stores.
  struct Storing {
    std::string to = {};                    // here
    bool is_of_report = false;              // false: the controller has asked for it
    RunStorage::Place place = {};           // there
    std::optional<Dict> files = {};         // once it is there, and there was no space for its list
    TimePoint retry_at = TimePoint::max();  // then
  };
  struct OnNode {
    std::set<std::string> there = {};
    std::deque<std::string> to_send = {};
    std::set<std::string> loading = {};
    std::set<std::string> unneeded = {};                // those of them that are dropped once they are there
    std::map<std::string, TimePoint> downloading = {};  // waits for its files to be here; then, for another try
    std::map<std::string, Storing> storing = {};        // by its path on the node
    std::optional<FileSender> sender = {};
    std::map<std::string, Receiver> receivers = {};  // by its path on the node
    std::string kept = {};                           // by keep_fetched()
    std::set<std::string> directories = {};          // in which workers have worked
  };
  struct Fault {
    NodeId node;
    std::string place;
    std::string reason;
  };

  void arrived(NodeId node, const Piece& piece) override;
  void arrived(NodeId node, const Printed& printed) override;
  void arrived(NodeId node, const TriedStorage& tried) override;
  void arrived(NodeId node, const FilesStored& stored) override;
  void arrived(NodeId node, const FilesLoaded& loaded) override;
  void send_more() override;

  void clear_nodes();
  void need(Worker& worker, const std::string& place);
  void drop_older(Worker& worker);
  bool rename_reported(NodeId node, const std::string& place);
  void call(WorkerId id, std::function<void()> make, std::function<void(const std::string& fault)> make_without = {});
  void make_calls(WorkerId id);
  void make_calls_on(NodeId node);
  void hear(Event event);
  void fetch_report(Worker& worker, const std::string& place);
  void store(NodeId node, const std::string& from, const std::string& to, bool is_of_report);
  void list_stored(NodeId node, const std::string& from);
  void bring_here(NodeId node, const std::string& from, const std::string& to, bool is_of_report);
  void receive(NodeId node, const std::string& from, const std::string& to, bool is_of_report);
  void has_arrived(NodeId node, const std::string& from, const std::string& to, bool is_of_report,
                   const std::string& fault);
  void end_fetching(WorkerId id, const std::string& fault);
  void end_with(WorkerId id, const std::string& fault);
  void cannot_have(NodeId node, const std::string& place, const std::string& fault);
  static bool can_do_without(Worker& worker, const std::string& place, const std::string& fault);
  bool has_files(NodeId node, const std::string& place);
  void take_downloads();
  std::vector<NodeId> nodes_that_wait_for(const std::string& download) const;
  void try_storage(NodeId node);
  void go_on_trying();
  void announce(NodeId node);
  void cannot_use_storage(NodeId node, const std::string& fault);
  void fails_in_storage(NodeId node, const std::string& fault);
  std::string name_of(NodeId node) const;
  void lose(NodeId node);
  void forget(WorkerId id);
  void drop_unless_held(NodeId node, const std::string& place);
  void stop_sending(NodeId node, OnNode& on_node);

  std::unique_ptr<Lease> lease_;
  ClusterEngine& nodes_;
  std::filesystem::path directory_;
  std::map<WorkerId, Worker> workers_ = {};
  std::map<NodeId, OnNode> on_nodes_ = {};
  std::vector<Event> heard_ = {};  // for the next wait()
  Downloads downloads_;
  bool has_said_it_waits_ = false;  // for the storage
  std::optional<StorageReach> reach_ = {};
  std::map<NodeId, Event> joining_ = {};                     // nodes that try the storage before they are announced
  std::map<std::string, std::string> without_storage_ = {};  // why nodes do not reach it, by name
};

}  // namespace cadre::engine::cluster
