// Messages between a worker and its controller as plain values. protocol.capnp defines their wire format.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "cadre/value.h"

namespace cadre::channel {

// Controller to worker, once, first: the work to run.
struct Assignment {
  std::string entry = {};  // a name registered with worker::register_entry
  Value payload = {};      // input of the entry: a dictionary with keys that the entry defines
};

// Worker to controller: one result. The worker waits for the Answer.
struct Report {
  std::int64_t step = 0;           // number of reports of this lineage, including this one
  Metrics metrics = {};            // as stored, including the metrics that the worker adds
  std::string checkpoint = {};     // name of the directory to commit, inside the worker's directory; empty: none
  Value details = {};              // additional data for the controller of this kind of run
  bool offers_checkpoint = false;  // true: can be sent again with a checkpoint while it waits for its answer
};
// Worker to controller, last: the function returned, or was unwound by a stop. Not answered.
struct Finished {
  Value value = {};  // the return value; null if unwound
};
// Worker to controller, last: an exception left the function. Not answered.
struct Failed {
  std::string message = {};
};
// Worker to controller, last: it cannot take over the assignment that it was given. Not answered.
struct Declined {};
// Calls of the controller. Each thread of a worker may have one at a time, and waits for its reply, which may come much
// later; the reply repeats the call's number.
using CallNumber = std::uint64_t;  // from 1 in each worker
struct Caller {
  std::uint64_t worker = 0;  // its id in the engine
  CallNumber call = 0;
  auto operator<=>(const Caller&) const = default;
};

// Worker to controller: a call of the group's key-value store (worker/key_value_store.h), replied to by a StoreReply.
struct StoreRequest {
  enum class Operation { set, get, wait, contains, add, compare_and_set, erase, size };
  Operation operation = Operation::size;
  std::vector<std::string> keys = {};  // exactly one for operations on a single key
  std::string value = {};              // bytes to set
  std::string expected = {};           // bytes that compare_and_set expects
  std::int64_t amount = 0;             // for add
  std::int64_t timeout_ms = 0;         // of operations that wait
  CallNumber call = 0;
  bool operator==(const StoreRequest&) const = default;
};
// Worker to controller: a call that the controller of this kind of run understands, replied to by a Reply.
struct Request {
  Value content = {};
  CallNumber call = 0;
};
// Worker to controller, at any time: information for the controller of this kind of run. Not answered.
struct Notice {
  Value content = {};
};
using Message = std::variant<Report, Finished, Failed, Declined, StoreRequest, Request, Notice>;

// Returns true if a worker sends nothing after this message.
inline bool is_last(const Message& message) {
  return std::holds_alternative<Finished>(message) || std::holds_alternative<Failed>(message) ||
         std::holds_alternative<Declined>(message);
}

enum class Verdict {
  go_on,
  stop,
  save,       // send the same report again, with a checkpoint
  take_over,  // continue with the assignment in the answer
};

// Controller to worker: the reply to a Report, sent when the report is committed and the worker may continue.
struct Answer {
  Verdict verdict = Verdict::go_on;
  std::string checkpoint = {};  // the committed directory's path; empty: the report had none
  // The payload of the Assignment to take over; to go on: what has changed of the worker's, null if nothing has
  Value assignment = {};
};

// Controller to worker: the reply to a StoreRequest.
struct StoreReply {
  std::string value = {};   // bytes; result of get and compare_and_set
  std::int64_t number = 0;  // result of add and size; 1 or 0 for contains and erase
  std::string error = {};   // reason of a failure, which makes the other fields invalid; empty: success
  CallNumber call = 0;      // of the StoreRequest
  bool operator==(const StoreReply&) const = default;
};

// Controller to worker: the reply to a Request.
struct Reply {
  Value content = {};
  std::string error = {};  // reason of a failure; empty: success
  CallNumber call = 0;     // of the Request
  bool operator==(const Reply&) const = default;
};

using FromController = std::variant<Assignment, Answer, StoreReply, Reply>;

}  // namespace cadre::channel
