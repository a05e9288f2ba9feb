// The nodes of an experiment or a training run, as its events tell of them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "store/tables.h"

namespace cadre::cli {

struct NodeHistory {
  std::int64_t session = 0;  // of the controller, from 1: a later one may use the numbers of nodes again
  engine::Node node = {};
  double joined = 0;  // seconds since 1970
  std::optional<double> draining = {};
  std::optional<double> left = {};
  bool left_with_run = false;               // true: its controller has ended, and it had not drained before
  bool is_lost = false;                     // true: it has left without draining
  std::string reason = {};                  // why it drains, or has left
  std::int64_t workers = 0;                 // that were started there
  double busy = 0;                          // seconds in which one was there
  std::vector<std::int64_t> running = {};   // trials, or ranks of a training run, whose workers are there now
  std::vector<std::string> validated = {};  // checkpoints whose validators are there now

  // Returns "ready", "draining", "left" or "lost".
  std::string state() const;
};

// Follows the rows of a store, in their order.
class NodeLog {
 public:
  explicit NodeLog(bool is_training_run) : is_training_run_(is_training_run) {}

  void on(const store::ResultRow& row) { time_ = row.time; }
  // Throws StorageError for a row that no version of Cadre wrote.
  void on(const store::EventRow& row);
  void on(const store::DecisionRow& row);
  // The controller has ended, with its nodes.
  void end_session(const std::string& reason);

  // Returns the nodes in the order in which they came.
  std::vector<NodeHistory> nodes() const;
  std::int64_t sessions() const { return sessions_; }

 private:
  using Worker = std::pair<std::int64_t, std::int64_t>;  // trial, rank or checkpoint, and attempt
  struct Validator {
    std::string checkpoint = {};  // directory
    engine::NodeId node = 0;
  };

  void join(engine::Node node, double time);
  NodeHistory* find(engine::NodeId node);
  void launch(const Dict& data, std::int64_t trial, const std::string& source);
  void validate(const Dict& data, const std::string& source);
  void start(Worker worker, engine::NodeId node);
  void begins_on(engine::NodeId node);
  void ends_on(engine::NodeId node);
  void leave(engine::NodeId node);

  bool is_training_run_;
  std::int64_t sessions_ = 0;
  double time_ = 0;  // of the last row
  std::vector<NodeHistory> nodes_ = {};
  std::map<engine::NodeId, std::size_t> present_ = {};          // nodes of this session that have not left, by index
  std::map<Worker, std::vector<engine::NodeId>> workers_ = {};  // of trials or ranks; a trial may be on several nodes
  std::map<Worker, Validator> validators_ = {};
  // Counts the workers that are on a node, and says since when there was one.
  struct Busy {
    std::int64_t workers = 0;
    double since = 0;
  };
  std::map<engine::NodeId, Busy> busy_ = {};
};

}  // namespace cadre::cli
