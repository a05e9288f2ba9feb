#include "channel/codec.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>

#include "channel/kj.h"

namespace cadre::channel {
namespace {

// Enough for a report of a hundred metrics without malloc; clearing it for each message takes 50 ns.
constexpr std::size_t scratch_words = 512;

kj::StringPtr as_kj(const std::string& text) { return kj::StringPtr(text.c_str(), text.size()); }
std::string as_string(capnp::Text::Reader text) { return std::string(text.begin(), text.size()); }

capnp::Data::Reader as_data(const std::string& bytes) {
  return {reinterpret_cast<const kj::byte*>(bytes.data()), bytes.size()};
}
std::string as_string(capnp::Data::Reader bytes) {
  return std::string(reinterpret_cast<const char*>(bytes.begin()), bytes.size());
}

// The levels of lists and dictionaries that may still follow. `most` is the total limit, for the message.
struct Levels {
  std::size_t most;
  std::size_t left = most;

  template <class Fault>
  Levels inside() const {
    if (left == 0) {
      throw Fault("a value is nested deeper than the " + std::to_string(most) +
                  " levels of lists and dictionaries that it may have");
    }
    return {most, left - 1};
  }
};
constexpr Levels kPayloadLevels{base::max_value_depth};
constexpr Levels kInsideMetrics{base::max_result_depth, base::max_result_depth - 1};

// ---- writing

void write_value(wire::Value::Builder out, const Value& value, Levels levels);

void write_entries(capnp::List<wire::Entry>::Builder out, const Dict& entries, Levels inside) {
  for (capnp::uint i = 0; i < out.size(); ++i) {
    out[i].setKey(as_kj(entries[i].first));
    write_value(out[i].initValue(), entries[i].second, inside);
  }
}

capnp::uint list_size(std::size_t items) {
  if (items > max_message_bytes / 8) throw InvalidArgument("a list of " + std::to_string(items) + " items is too long");
  return static_cast<capnp::uint>(items);
}

struct ValueWriter {
  wire::Value::Builder out;
  Levels levels;

  void operator()(std::monostate) { out.setNull(); }
  void operator()(bool value) { out.setBool(value); }
  void operator()(std::int64_t value) { out.setInteger(value); }
  void operator()(double value) { out.setReal(value); }
  void operator()(const std::string& text) { out.setText(as_kj(text)); }
  void operator()(const std::shared_ptr<const List>& items) {
    const Levels inside = levels.inside<InvalidArgument>();
    auto list = out.initList(list_size(items->size()));
    for (capnp::uint i = 0; i < list.size(); ++i) write_value(list[i], (*items)[i], inside);
  }
  void operator()(const std::shared_ptr<const Dict>& entries) {
    const Levels inside = levels.inside<InvalidArgument>();
    write_entries(out.initDict(list_size(entries->size())), *entries, inside);
  }
  void operator()(const Reference& reference) {
    auto group = out.initReference();
    group.setKind(as_kj(reference.kind));
    group.setId(as_kj(reference.id));
  }
};

void write_value(wire::Value::Builder out, const Value& value, Levels levels) {
  std::visit(ValueWriter{out, levels}, value.data());
}

std::string too_large(std::size_t bytes, std::size_t most) {
  return "a message of " + std::to_string(bytes) + " bytes is over the limit of " + std::to_string(most) +
         "; keep large data in files and pass their paths";
}

void copy_frame(capnp::MessageBuilder& message, std::size_t most_bytes, Bytes& frame) {
  const auto segments = message.getSegmentsForOutput();
  const std::size_t bytes = capnp::computeSerializedSizeInWords(segments) * sizeof(capnp::word);
  if (bytes > most_bytes) throw InvalidArgument(too_large(bytes, most_bytes));
  frame.resize(frame_header_bytes + bytes);
  const std::uint32_t header[2] = {frame_magic, static_cast<std::uint32_t>(bytes)};
  std::memcpy(frame.data(), header, sizeof header);
  kj::ArrayOutputStream out(kj::arrayPtr(reinterpret_cast<kj::byte*>(frame.data() + frame_header_bytes), bytes));
  capnp::writeMessage(out, segments);
}

template <class Root, class Fill>
void encode_as(Bytes& frame, Fill fill, std::size_t most_bytes = max_message_bytes) {
  try {
    capnp::word scratch[scratch_words];
    std::memset(scratch, 0, sizeof scratch);
    capnp::MallocMessageBuilder message(kj::arrayPtr(scratch, scratch_words));
    auto root = message.initRoot<Root>();
    root.setVersion(wire::VERSION);
    fill(root);
    copy_frame(message, most_bytes, frame);
  } catch (const kj::Exception& error) {
    throw InvalidArgument(std::string("a message cannot be written: ") + error.getDescription().cStr());
  }
}

// ---- reading

Value read_value(wire::Value::Reader in, Levels levels);

Dict read_entries(capnp::List<wire::Entry>::Reader in, Levels inside) {
  Dict entries;
  entries.reserve(in.size());
  for (const auto entry : in) entries.emplace_back(as_string(entry.getKey()), read_value(entry.getValue(), inside));
  return entries;
}

List read_list(capnp::List<wire::Value>::Reader in, Levels inside) {
  List items;
  items.reserve(in.size());
  for (const auto item : in) items.push_back(read_value(item, inside));
  return items;
}

Value read_value(wire::Value::Reader in, Levels levels) {
  switch (in.which()) {
    case wire::Value::NULL_:
      return {};
    case wire::Value::BOOL:
      return in.getBool();
    case wire::Value::INTEGER:
      return std::int64_t{in.getInteger()};
    case wire::Value::REAL:
      return in.getReal();
    case wire::Value::TEXT:
      return as_string(in.getText());
    case wire::Value::LIST:
      return read_list(in.getList(), levels.inside<ProtocolError>());
    case wire::Value::DICT:
      return read_entries(in.getDict(), levels.inside<ProtocolError>());
    case wire::Value::REFERENCE:
      return Reference{as_string(in.getReference().getKind()), as_string(in.getReference().getId())};
  }
  throw ProtocolError("a value is of an unknown kind");
}

capnp::ReaderOptions limits(std::size_t words) {
  // A valid message is traversed once; a forged message whose pointers share a target could be traversed without end.
  // A level of a value takes up to three pointers.
  return {.traversalLimitInWords = 2 * words + 64, .nestingLimit = 4 * base::max_value_depth};
}

// Returns the body as aligned words, because Cap'n Proto reads them in place; `copy` holds them if the body is not
// aligned.
kj::ArrayPtr<const capnp::word> as_words(std::span<const std::byte> body, std::vector<std::uint64_t>& copy) {
  const void* data = body.data();
  const std::size_t words = body.size() / sizeof(capnp::word);
  if (reinterpret_cast<std::uintptr_t>(data) % alignof(std::uint64_t) != 0) {
    copy.resize(words);
    data = std::memcpy(copy.data(), data, words * sizeof(capnp::word));
  }
  return kj::arrayPtr(static_cast<const capnp::word*>(data), words);
}

template <class Root, class Read>
auto decode_as(std::span<const std::byte> body, Read read) {
  try {
    std::vector<std::uint64_t> copy;
    const auto words = as_words(body, copy);
    capnp::FlatArrayMessageReader message(words, limits(words.size()));
    const auto root = message.getRoot<Root>();
    if (root.getVersion() != wire::VERSION) {
      throw ProtocolError("a message is of protocol version " + std::to_string(root.getVersion()) +
                          "; this program speaks version " + std::to_string(wire::VERSION));
    }
    return read(root);
  } catch (const kj::Exception& error) {
    throw ProtocolError(std::string("a message cannot be read: ") + error.getDescription().cStr());
  }
}

Message read_report(wire::FromWorker::Report::Reader in, std::size_t bytes) {
  if (bytes > base::max_result_bytes) throw ProtocolError(too_large(bytes, base::max_result_bytes));
  return Report{in.getStep(), Metrics(read_entries(in.getMetrics(), kInsideMetrics)), as_string(in.getCheckpoint()),
                in.hasDetails() ? read_value(in.getDetails(), kPayloadLevels) : Value(), in.getOffersCheckpoint()};
}

constexpr std::pair<Verdict, wire::Verdict> kVerdicts[] = {{Verdict::go_on, wire::Verdict::GO_ON},
                                                           {Verdict::stop, wire::Verdict::STOP},
                                                           {Verdict::save, wire::Verdict::SAVE},
                                                           {Verdict::take_over, wire::Verdict::TAKE_OVER}};

using Operation = StoreRequest::Operation;
constexpr std::pair<Operation, wire::StoreOperation> kOperations[] = {
    {Operation::set, wire::StoreOperation::SET},
    {Operation::get, wire::StoreOperation::GET},
    {Operation::wait, wire::StoreOperation::WAIT},
    {Operation::contains, wire::StoreOperation::CONTAINS},
    {Operation::add, wire::StoreOperation::ADD},
    {Operation::compare_and_set, wire::StoreOperation::COMPARE_AND_SET},
    {Operation::erase, wire::StoreOperation::ERASE},
    {Operation::size, wire::StoreOperation::SIZE}};

template <class Ours, class Wire, std::size_t n>
Wire to_wire(const std::pair<Ours, Wire> (&names)[n], Ours value) {
  return std::ranges::find(names, value, &std::pair<Ours, Wire>::first)->second;
}

template <class Ours, class Wire, std::size_t n>
Ours from_wire(const std::pair<Ours, Wire> (&names)[n], Wire read, const char* unknown) {
  const auto* const found = std::ranges::find(names, read, &std::pair<Ours, Wire>::second);
  if (found == std::end(names)) throw ProtocolError(unknown);
  return found->first;
}

StoreRequest read_store_request(wire::FromWorker::StoreRequest::Reader in, CallNumber call) {
  StoreRequest request{.operation = from_wire(kOperations, in.getOperation(), "a store's operation is unknown"),
                       .value = as_string(in.getValue()),
                       .expected = as_string(in.getExpected()),
                       .amount = in.getAmount(),
                       .timeout_ms = in.getTimeoutMs(),
                       .call = call};
  for (const auto key : in.getKeys()) request.keys.push_back(as_string(key));
  return request;
}

}  // namespace

void encode(const Assignment& assignment, Bytes& frame) {
  encode_as<wire::FromController>(frame, [&](wire::FromController::Builder root) {
    auto out = root.initAssignment();
    out.setEntry(as_kj(assignment.entry));
    write_value(out.initPayload(), assignment.payload, kPayloadLevels);
  });
}

void encode(const Answer& answer, Bytes& frame) {
  encode_as<wire::FromController>(frame, [&](wire::FromController::Builder root) {
    auto out = root.initAnswer();
    out.setVerdict(to_wire(kVerdicts, answer.verdict));
    if (!answer.checkpoint.empty()) out.setCheckpoint(as_kj(answer.checkpoint));
    if (!answer.assignment.is_null()) write_value(out.initAssignment(), answer.assignment, kPayloadLevels);
  });
}

void encode(const Report& report, Bytes& frame) {
  const auto fill = [&](wire::FromWorker::Builder root) {
    auto out = root.initReport();
    out.setStep(report.step);
    write_entries(out.initMetrics(list_size(report.metrics.size())), report.metrics.dict(), kInsideMetrics);
    if (!report.checkpoint.empty()) out.setCheckpoint(as_kj(report.checkpoint));
    if (!report.details.is_null()) write_value(out.initDetails(), report.details, kPayloadLevels);
    out.setOffersCheckpoint(report.offers_checkpoint);
  };
  encode_as<wire::FromWorker>(frame, fill, base::max_result_bytes);
}

void encode(const Finished& finished, Bytes& frame) {
  encode_as<wire::FromWorker>(
      frame, [&](wire::FromWorker::Builder root) { write_value(root.initFinished(), finished.value, kPayloadLevels); });
}

void encode(const Failed& failed, Bytes& frame) {
  encode_as<wire::FromWorker>(frame, [&](wire::FromWorker::Builder root) { root.setFailed(as_kj(failed.message)); });
}

void encode(const Declined&, Bytes& frame) {
  encode_as<wire::FromWorker>(frame, [](wire::FromWorker::Builder root) { root.setDeclined(); });
}

void encode(const StoreRequest& request, Bytes& frame) {
  encode_as<wire::FromWorker>(frame, [&](wire::FromWorker::Builder root) {
    auto out = root.initStoreRequest();
    out.setOperation(to_wire(kOperations, request.operation));
    auto keys = out.initKeys(list_size(request.keys.size()));
    for (capnp::uint i = 0; i < keys.size(); ++i) keys.set(i, as_kj(request.keys[i]));
    out.setValue(as_data(request.value));
    out.setExpected(as_data(request.expected));
    out.setAmount(request.amount);
    out.setTimeoutMs(request.timeout_ms);
    root.setCall(request.call);
  });
}

void encode(const Request& request, Bytes& frame) {
  encode_as<wire::FromWorker>(frame, [&](wire::FromWorker::Builder root) {
    write_value(root.initRequest(), request.content, kPayloadLevels);
    root.setCall(request.call);
  });
}

void encode(const Notice& notice, Bytes& frame) {
  encode_as<wire::FromWorker>(
      frame, [&](wire::FromWorker::Builder root) { write_value(root.initNotice(), notice.content, kPayloadLevels); });
}

void encode(const Reply& reply, Bytes& frame) {
  encode_as<wire::FromController>(frame, [&](wire::FromController::Builder root) {
    auto out = root.initReply();
    write_value(out.initContent(), reply.content, kPayloadLevels);
    if (!reply.error.empty()) out.setError(as_kj(reply.error));
    root.setCall(reply.call);
  });
}

void encode(const StoreReply& reply, Bytes& frame) {
  encode_as<wire::FromController>(frame, [&](wire::FromController::Builder root) {
    auto out = root.initStoreReply();
    out.setValue(as_data(reply.value));
    out.setNumber(reply.number);
    if (!reply.error.empty()) out.setError(as_kj(reply.error));
    root.setCall(reply.call);
  });
}

Message decode_message(std::span<const std::byte> body) {
  return decode_as<wire::FromWorker>(body, [&](wire::FromWorker::Reader root) -> Message {
    switch (root.which()) {
      case wire::FromWorker::REPORT:
        return read_report(root.getReport(), body.size());
      case wire::FromWorker::FINISHED:
        return Finished{read_value(root.getFinished(), kPayloadLevels)};
      case wire::FromWorker::FAILED:
        return Failed{as_string(root.getFailed())};
      case wire::FromWorker::DECLINED:
        return Declined{};
      case wire::FromWorker::STORE_REQUEST:
        return read_store_request(root.getStoreRequest(), root.getCall());
      case wire::FromWorker::REQUEST:
        return Request{read_value(root.getRequest(), kPayloadLevels), root.getCall()};
      case wire::FromWorker::NOTICE:
        return Notice{read_value(root.getNotice(), kPayloadLevels)};
    }
    throw ProtocolError("a worker's message is of an unknown kind");
  });
}

bool is_last_message(std::span<const std::byte> body) noexcept {
  try {
    return decode_as<wire::FromWorker>(body, [](wire::FromWorker::Reader root) {
      const auto kind = root.which();
      return kind == wire::FromWorker::FINISHED || kind == wire::FromWorker::FAILED ||
             kind == wire::FromWorker::DECLINED;
    });
  } catch (const Error&) {
    return false;
  }
}

FromController decode_from_controller(std::span<const std::byte> body) {
  return decode_as<wire::FromController>(body, [](wire::FromController::Reader root) -> FromController {
    switch (root.which()) {
      case wire::FromController::ASSIGNMENT: {
        const auto in = root.getAssignment();
        return Assignment{as_string(in.getEntry()), read_value(in.getPayload(), kPayloadLevels)};
      }
      case wire::FromController::ANSWER: {
        const auto in = root.getAnswer();
        Value assignment = in.hasAssignment() ? read_value(in.getAssignment(), kPayloadLevels) : Value();
        return Answer{from_wire(kVerdicts, in.getVerdict(), "an answer's verdict is unknown"),
                      as_string(in.getCheckpoint()), std::move(assignment)};
      }
      case wire::FromController::STORE_REPLY: {
        const auto in = root.getStoreReply();
        return StoreReply{as_string(in.getValue()), in.getNumber(), as_string(in.getError()), root.getCall()};
      }
      case wire::FromController::REPLY: {
        const auto in = root.getReply();
        return Reply{read_value(in.getContent(), kPayloadLevels), as_string(in.getError()), root.getCall()};
      }
    }
    throw ProtocolError("the controller's message is of an unknown kind");
  });
}

}  // namespace cadre::channel
