// What a worker and its controller say to each other, as plain values. protocol.capnp is the same on the wire.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "cadre/value.h"

namespace cadre::channel {

// Controller to worker, once, first: what to run.
struct Assignment {
  std::string entry = {};  // a name registered with run::register_entry
  Value payload = {};      // what the entry needs; a dictionary whose keys the entry knows
};

// Worker to controller: one result. The worker waits for the Answer.
struct Report {
  std::int64_t step = 0;           // reports of this lineage so far, this one included
  Metrics metrics = {};            // as they are stored, with what the worker adds
  std::string checkpoint = {};     // a directory to commit, as its name inside the worker's directory; empty: none
  Value details = {};              // what the controller of its kind of run is told beside that
  bool offers_checkpoint = false;  // it can be sent once more with a checkpoint, as long as it waits for its answer
};
// Worker to controller, last: the function returned, or was unwound by a stop. Not answered.
struct Finished {
  Value value = {};  // what it returned; null where it was unwound
};
// Worker to controller, last: an exception left the function. Not answered.
struct Failed {
  std::string message = {};
};
// Worker to controller, last: it was told to take another assignment over and cannot. Not answered.
struct Declined {};
// Worker to controller: a call of the group's key-value store (run/key_value_store.h). The worker waits for the
// StoreReply, which may come much later.
struct StoreRequest {
  enum class Operation { set, get, wait, contains, add, compare_and_set, erase, size };
  Operation operation = Operation::size;
  std::vector<std::string> keys = {};  // one where the operation takes one
  std::string value = {};              // bytes: to be set
  std::string expected = {};           // bytes: by compare_and_set
  std::int64_t amount = 0;             // to be added
  std::int64_t timeout_ms = 0;         // of what waits
  bool operator==(const StoreRequest&) const = default;
};
// Worker to controller: a question that the controller of its kind of run understands. The worker waits for the Reply,
// which may come much later.
struct Request {
  Value content = {};
};
// Worker to controller, at any time: something that the controller of its kind of run is to know. Not answered.
struct Notice {
  Value content = {};
};
using Message = std::variant<Report, Finished, Failed, Declined, StoreRequest, Request, Notice>;

// Whether a worker that has sent it sends nothing more.
inline bool is_last(const Message& message) {
  return std::holds_alternative<Finished>(message) || std::holds_alternative<Failed>(message) ||
         std::holds_alternative<Declined>(message);
}

enum class Verdict {
  go_on,
  stop,
  save,       // the same report once more, with a checkpoint
  take_over,  // go on as the assignment in the answer says
};

// Controller to worker: the reply to a Report, sent when it is committed and the worker may go on.
struct Answer {
  Verdict verdict = Verdict::go_on;
  std::string checkpoint = {};  // the committed directory's path; empty: the report had none
  Value assignment = {};        // to be taken over: what an Assignment has as its payload
};

// Controller to worker: the reply to a StoreRequest.
struct StoreReply {
  std::string value = {};   // bytes: of get and compare_and_set
  std::int64_t number = 0;  // of add and size; of contains and erase 1 or 0
  std::string error = {};   // why it could not be done, and then nothing else counts; empty: it was
  bool operator==(const StoreReply&) const = default;
};

// Controller to worker: the reply to a Request.
struct Reply {
  Value content = {};
  std::string error = {};  // why there is none; empty: there is
  bool operator==(const Reply&) const = default;
};

}  // namespace cadre::channel
