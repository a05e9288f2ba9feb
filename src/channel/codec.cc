#include "channel/codec.h"

#include <cstring>
#include <string>
#include <type_traits>
#include <utility>

#include "channel/kj.h"

namespace cadre::channel {
namespace {

// Enough for a report of a hundred metrics without a call of malloc; cleared each time, which takes 50 ns.
constexpr std::size_t scratch_words = 512;

kj::StringPtr as_kj(const std::string& text) { return kj::StringPtr(text.c_str(), text.size()); }
std::string as_string(capnp::Text::Reader text) { return std::string(text.begin(), text.size()); }

std::string too_deep() {
  return "a value is nested deeper than " + std::to_string(max_depth) + " lists and dictionaries";
}

// ---- writing

void write_value(wire::Value::Builder out, const Value& value, int depth);

void write_entries(capnp::List<wire::Entry>::Builder out, const Dict& entries, int depth) {
  for (capnp::uint i = 0; i < out.size(); ++i) {
    out[i].setKey(as_kj(entries[i].first));
    write_value(out[i].initValue(), entries[i].second, depth);
  }
}

capnp::uint list_size(std::size_t items) {
  if (items > max_message_bytes / 8) throw InvalidArgument("a list of " + std::to_string(items) + " items is too long");
  return static_cast<capnp::uint>(items);
}

struct ValueWriter {
  wire::Value::Builder out;
  int depth;

  void operator()(std::monostate) { out.setNull(); }
  void operator()(bool value) { out.setBool(value); }
  void operator()(std::int64_t value) { out.setInteger(value); }
  void operator()(double value) { out.setReal(value); }
  void operator()(const std::string& text) { out.setText(as_kj(text)); }
  void operator()(const std::shared_ptr<const List>& items) {
    auto list = out.initList(list_size(items->size()));
    for (capnp::uint i = 0; i < list.size(); ++i) write_value(list[i], (*items)[i], depth + 1);
  }
  void operator()(const std::shared_ptr<const Dict>& entries) {
    write_entries(out.initDict(list_size(entries->size())), *entries, depth + 1);
  }
  void operator()(const Reference& reference) {
    auto group = out.initReference();
    group.setKind(as_kj(reference.kind));
    group.setId(as_kj(reference.id));
  }
};

void write_value(wire::Value::Builder out, const Value& value, int depth) {
  if (depth > max_depth) throw InvalidArgument(too_deep());
  std::visit(ValueWriter{out, depth}, value.data());
}

std::string too_large(std::size_t bytes) {
  return "a message of " + std::to_string(bytes) + " bytes is over the limit of " + std::to_string(max_message_bytes) +
         "; keep large data in files and pass their paths";
}

void copy_frame(capnp::MessageBuilder& message, Bytes& frame) {
  const auto segments = message.getSegmentsForOutput();
  const std::size_t bytes = capnp::computeSerializedSizeInWords(segments) * sizeof(capnp::word);
  if (bytes > max_message_bytes) throw InvalidArgument(too_large(bytes));
  frame.resize(frame_header_bytes + bytes);
  const std::uint32_t header[2] = {frame_magic, static_cast<std::uint32_t>(bytes)};
  std::memcpy(frame.data(), header, sizeof header);
  kj::ArrayOutputStream out(kj::arrayPtr(reinterpret_cast<kj::byte*>(frame.data() + frame_header_bytes), bytes));
  capnp::writeMessage(out, segments);
}

template <class Root, class Fill>
void encode_as(Bytes& frame, Fill fill) {
  try {
    capnp::word scratch[scratch_words];
    std::memset(scratch, 0, sizeof scratch);
    capnp::MallocMessageBuilder message(kj::arrayPtr(scratch, scratch_words));
    auto root = message.initRoot<Root>();
    root.setVersion(wire::VERSION);
    fill(root);
    copy_frame(message, frame);
  } catch (const kj::Exception& error) {
    throw InvalidArgument(std::string("a message cannot be written: ") + error.getDescription().cStr());
  }
}

// ---- reading

Value read_value(wire::Value::Reader in, int depth);

Dict read_entries(capnp::List<wire::Entry>::Reader in, int depth) {
  Dict entries;
  entries.reserve(in.size());
  for (const auto entry : in) entries.emplace_back(as_string(entry.getKey()), read_value(entry.getValue(), depth));
  return entries;
}

List read_list(capnp::List<wire::Value>::Reader in, int depth) {
  List items;
  items.reserve(in.size());
  for (const auto item : in) items.push_back(read_value(item, depth));
  return items;
}

Value read_value(wire::Value::Reader in, int depth) {
  if (depth > max_depth) throw ProtocolError(too_deep());
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
      return read_list(in.getList(), depth + 1);
    case wire::Value::DICT:
      return read_entries(in.getDict(), depth + 1);
    case wire::Value::REFERENCE:
      return Reference{as_string(in.getReference().getKind()), as_string(in.getReference().getId())};
  }
  throw ProtocolError("a value is of an unknown kind");
}

capnp::ReaderOptions limits(std::size_t words) {
  // An honest message is read once; a forged one whose pointers share a target could be read without end. A level of a
  // value takes up to three pointers.
  return {.traversalLimitInWords = 2 * words + 64, .nestingLimit = 4 * max_depth};
}

// Cap'n Proto reads words in place.
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

Message read_report(wire::FromWorker::Report::Reader in) {
  return Report{in.getStep(), Metrics(read_entries(in.getMetrics(), 1)), as_string(in.getCheckpoint())};
}

Verdict read_verdict(wire::Verdict verdict) {
  if (verdict == wire::Verdict::GO_ON) return Verdict::go_on;
  if (verdict == wire::Verdict::STOP) return Verdict::stop;
  throw ProtocolError("an answer's verdict is unknown");
}

}  // namespace

void encode(const Assignment& assignment, Bytes& frame) {
  encode_as<wire::FromController>(frame, [&](wire::FromController::Builder root) {
    auto out = root.initAssignment();
    out.setEntry(as_kj(assignment.entry));
    write_value(out.initPayload(), assignment.payload, 0);
  });
}

void encode(const Answer& answer, Bytes& frame) {
  encode_as<wire::FromController>(frame, [&](wire::FromController::Builder root) {
    auto out = root.initAnswer();
    out.setVerdict(answer.verdict == Verdict::stop ? wire::Verdict::STOP : wire::Verdict::GO_ON);
    if (!answer.checkpoint.empty()) out.setCheckpoint(as_kj(answer.checkpoint));
  });
}

void encode(const Report& report, Bytes& frame) {
  encode_as<wire::FromWorker>(frame, [&](wire::FromWorker::Builder root) {
    auto out = root.initReport();
    out.setStep(report.step);
    write_entries(out.initMetrics(list_size(report.metrics.size())), report.metrics.dict(), 1);
    if (!report.checkpoint.empty()) out.setCheckpoint(as_kj(report.checkpoint));
  });
}

void encode(const Finished&, Bytes& frame) {
  encode_as<wire::FromWorker>(frame, [](wire::FromWorker::Builder root) { root.setFinished(); });
}

void encode(const Failed& failed, Bytes& frame) {
  encode_as<wire::FromWorker>(frame, [&](wire::FromWorker::Builder root) { root.setFailed(as_kj(failed.message)); });
}

Message decode_message(std::span<const std::byte> body) {
  return decode_as<wire::FromWorker>(body, [](wire::FromWorker::Reader root) -> Message {
    switch (root.which()) {
      case wire::FromWorker::REPORT:
        return read_report(root.getReport());
      case wire::FromWorker::FINISHED:
        return Finished{};
      case wire::FromWorker::FAILED:
        return Failed{as_string(root.getFailed())};
    }
    throw ProtocolError("a worker's message is of an unknown kind");
  });
}

Assignment decode_assignment(std::span<const std::byte> body) {
  return decode_as<wire::FromController>(body, [](wire::FromController::Reader root) {
    if (!root.isAssignment()) throw ProtocolError("the controller's first message is no assignment");
    const auto in = root.getAssignment();
    return Assignment{as_string(in.getEntry()), read_value(in.getPayload(), 0)};
  });
}

Answer decode_answer(std::span<const std::byte> body) {
  return decode_as<wire::FromController>(body, [](wire::FromController::Reader root) {
    if (!root.isAnswer()) throw ProtocolError("the controller's message is no answer");
    const auto in = root.getAnswer();
    return Answer{read_verdict(in.getVerdict()), as_string(in.getCheckpoint())};
  });
}

}  // namespace cadre::channel
