// Ranks that ask which checkpoints there are, and wait until what they have reported is committed, or validated. Pure:
// questions in, replies out, some of them later.
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

// What a rank asks: the typed form of channel::Request's content.
struct CheckpointQuestion {
  std::int64_t step = 0;                        // of the rank's last report
  bool validated = true;                        // not only committed
  std::optional<std::int64_t> timeout_ms = {};  // empty: as long as it takes
};
Value to_value(const CheckpointQuestion& question);
// Throws InvalidArgument or NotFound for what to_value() did not make.
CheckpointQuestion to_checkpoint_question(const Value& content);

class CheckpointQuestions {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  using Asker = std::uint64_t;  // one question at a time each
  struct Reply {
    Asker asker = 0;
    channel::Reply reply = {};
  };

  void ask(Asker asker, const CheckpointQuestion& question, TimePoint now);
  // To those whose checkpoints have got so far, or who do not wait any longer; and to those who would wait for ever,
  // for validations that lack something.
  std::vector<Reply> take_replies(const Checkpoints& checkpoints, const Validations& validations,
                                  const std::string& lack_of_validations, TimePoint now);
  bool empty() const { return waiting_.empty(); }
  // When somebody does not wait any longer.
  std::optional<TimePoint> next_deadline() const;
  // For another group: nobody waits.
  void clear() { waiting_.clear(); }

 private:
  struct Waiting {
    std::int64_t step = 0;
    bool validated = true;
    std::optional<TimePoint> until = {};
  };
  std::map<Asker, Waiting> waiting_;
};

}  // namespace cadre::train
