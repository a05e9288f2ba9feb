// Anything that a program reports survives the store's JSON and the channel unchanged; a frame that was changed on its
// way is either refused or a different message.
#include "base/json.h"
#include "channel/codec.h"
#include "fuzz/fuzzed_value.h"
#include "fuzz/require.h"

using namespace cadre;
using fuzz::require;

namespace {

bool equal(const channel::Report& a, const channel::Report& b) {
  return a.step == b.step && a.metrics == b.metrics && a.checkpoint == b.checkpoint && a.details == b.details &&
         a.offers_checkpoint == b.offers_checkpoint;
}

std::span<const std::byte> body_of(const channel::Bytes& frame) {
  return std::span(frame).subspan(channel::frame_header_bytes);
}

void change(channel::Bytes& frame, FuzzedDataProvider& input) {
  while (input.remaining_bytes() > 0) {
    const auto at = input.ConsumeIntegralInRange<std::size_t>(channel::frame_header_bytes, frame.size() - 1);
    frame[at] ^= static_cast<std::byte>(input.ConsumeIntegral<std::uint8_t>());
  }
}

void read_changed(const channel::Bytes& frame) {
  try {
    channel::Bytes again;
    std::visit([&](const auto& message) { encode(message, again); }, channel::decode_message(body_of(frame)));
  } catch (const channel::ProtocolError&) {
  } catch (const InvalidArgument&) {  // a forged message refers to one value many times: written out it is too large
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzedDataProvider input(data, size);
  const auto step = input.ConsumeIntegral<std::int64_t>();
  std::string checkpoint = fuzz::text_from(input);
  channel::Report report{step, Metrics(fuzz::dict_from(input)), std::move(checkpoint)};
  if (input.ConsumeBool()) report.details = fuzz::dict_from(input);
  report.offers_checkpoint = input.ConsumeBool();

  const std::string json = to_json(Value(report.metrics.dict()));
  const std::string again = to_json(base::parse_json(json, "what was written"));
  require(json == again, "metrics come back from the store's JSON");

  channel::Bytes frame;
  encode(report, frame);
  const channel::Message message = channel::decode_message(body_of(frame));
  require(std::holds_alternative<channel::Report>(message) && equal(std::get<channel::Report>(message), report),
          "a report comes back from its frame");

  const channel::Assignment assignment{report.checkpoint, report.metrics.dict()};
  encode(assignment, frame);
  const auto assigned = std::get<channel::Assignment>(channel::decode_from_controller(body_of(frame)));
  require(assigned.entry == assignment.entry && assigned.payload == assignment.payload,
          "an assignment comes back from its frame");

  encode(report, frame);
  change(frame, input);
  read_changed(frame);
  return 0;
}
