// Queries by ranks for the run's checkpoints, which wait until the rank's reported checkpoints are committed or
// validated. Pure: queries in, replies out, some of them later.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cadre/value.h"
#include "channel/message.h"
#include "train/reported_checkpoint.h"

namespace cadre::train {

// A rank's query: the typed form of channel::Request's content.
struct CheckpointQuestion {
  std::int64_t step = 0;                        // the rank's last report
  bool validated = true;                        // true: wait for validation, not only for the commit
  std::optional<std::int64_t> timeout_ms = {};  // empty: no limit
  // A checkpoint whose files the rank's node lacks: the reply comes when it has them. Empty: asks for all checkpoints.
  std::string lacks = {};
};
Value to_value(const CheckpointQuestion& question);
// Throws InvalidArgument or NotFound for values that to_value() did not make.
CheckpointQuestion to_checkpoint_question(const Value& content);

class CheckpointQuestions {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  struct Reply {
    channel::Caller caller = {};
    channel::Reply reply = {};
  };

  void ask(channel::Caller caller, const CheckpointQuestion& question, TimePoint now);
  // Removes and returns replies to queries whose checkpoints are ready or that timed out, and errors for queries that
  // would never be replied to: all others of an interrupted run, and those without a timeout whose validations lack
  // resources.
  std::vector<Reply> take_replies(const Checkpoints& checkpoints, const Validations& validations,
                                  const std::string& lack_of_validations, bool interrupted, TimePoint now);
  bool empty() const { return waiting_.empty(); }
  // Returns the earliest deadline of a waiting query.
  std::optional<TimePoint> next_deadline() const;
  // Drops all queries, for a new group.
  void clear() { waiting_.clear(); }

 private:
  struct Waiting {
    std::int64_t step = 0;
    bool validated = true;
    std::optional<TimePoint> until = {};
  };
  std::map<channel::Caller, Waiting> waiting_;
};

}  // namespace cadre::train
