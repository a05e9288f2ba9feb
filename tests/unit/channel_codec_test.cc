#include "channel/codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <string>

#include "base/value_limits.h"
#include "channel/frame.h"
#include "channel/kj.h"
#include "support/message_of.h"

namespace cadre::channel {
namespace {

using base::max_result_depth;
using base::max_value_depth;
using cadre::test_support::message_of;

using ::testing::HasSubstr;

std::span<const std::byte> body(const Bytes& frame) { return std::span(frame).subspan(frame_header_bytes); }

template <class T>
Bytes encoded(const T& message) {
  Bytes frame;
  encode(message, frame);
  return frame;
}

Value round_trip(const Value& value) {
  return std::get<Assignment>(decode_from_controller(body(encoded(Assignment{"entry", value})))).payload;
}

Value nested(std::size_t levels, const Value& innermost) {
  Value value = innermost;
  for (std::size_t i = 0; i < levels; ++i) value = i % 2 == 0 ? list(value) : Value(Dict{{"in", value}});
  return value;
}

Value all_kinds() {
  return {{"null", {}},
          {"bool", true},
          {"integer", 7},
          {"double", 0.1},
          {"text", "two\nlines"},
          {"empty text", ""},
          {"list", list(1, 2.5, "three", list())},
          {"dict", {{"a", 1}, {"b", {{"c", list(Value(), false)}}}}},
          {"empty dict", Value(Dict{})},
          {"reference", Reference{"object", "17"}},
          {"", "an empty key"}};
}

TEST(ChannelCodec, EveryKindOfValueComesBackEqual) {
  EXPECT_EQ(round_trip(all_kinds()), all_kinds());
  for (const Value& value :
       {Value(), Value(false), Value(0), Value(-0.0), Value(""), list(), Value(Dict{}), Value(Reference{"kind", ""})}) {
    EXPECT_EQ(round_trip(value), value) << to_json(value);
  }
}

TEST(ChannelCodec, TextKeepsEveryByte) {
  std::string text;
  for (int byte = 0; byte < 256; ++byte) text.push_back(static_cast<char>(byte));
  EXPECT_EQ(round_trip(text).get<std::string>(), text);
  EXPECT_EQ(round_trip(Value(Dict{{text, text}})).dict().at(0).first, text);
}

TEST(ChannelCodec, IntegersKeepAll64Bits) {
  for (const std::int64_t value : {std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max(),
                                   (std::int64_t{1} << 53) + 1, std::int64_t{-1}}) {
    EXPECT_EQ(round_trip(value).get<std::int64_t>(), value);
  }
}

TEST(ChannelCodec, DoublesKeepTheirBitsAlsoOfNaN) {
  for (const std::uint64_t bits :
       {std::uint64_t{0x7ff8000000000000}, std::uint64_t{0xfff8000000000001}, std::uint64_t{0x7ff0000000000000},
        std::uint64_t{0xfff0000000000000}, std::uint64_t{0x8000000000000000}, std::uint64_t{0x0000000000000001},
        std::uint64_t{0x7fefffffffffffff}}) {
    EXPECT_EQ(std::bit_cast<std::uint64_t>(round_trip(std::bit_cast<double>(bits)).get<double>()), bits);
  }
}

TEST(ChannelCodec, MessagesOfAWorkerComeBackEqual) {
  const Report report{std::int64_t{1} << 40, Metrics{{"loss", 0.5}, {"nested", {{"a", list(1, 2)}}}}, "checkpoint"};
  const auto back = std::get<Report>(decode_message(body(encoded(report))));
  EXPECT_EQ(back.step, report.step);
  EXPECT_EQ(back.metrics, report.metrics);
  EXPECT_EQ(back.checkpoint, report.checkpoint);
  EXPECT_TRUE(std::holds_alternative<Finished>(decode_message(body(encoded(Finished{})))));
  EXPECT_EQ(std::get<Failed>(decode_message(body(encoded(Failed{"why"})))).message, "why");
}

TEST(ChannelCodec, AnswersComeBackEqual) {
  const auto stop = std::get<Answer>(decode_from_controller(body(encoded(Answer{Verdict::stop, ""}))));
  EXPECT_EQ(stop.verdict, Verdict::stop);
  EXPECT_EQ(stop.checkpoint, "");
  const auto go_on = std::get<Answer>(decode_from_controller(body(encoded(Answer{Verdict::go_on, "/a/b"}))));
  EXPECT_EQ(go_on.verdict, Verdict::go_on);
  EXPECT_EQ(go_on.checkpoint, "/a/b");
}

TEST(ChannelCodec, AMessageOfManySegmentsComesBackEqual) {
  Dict entries;
  for (int i = 0; i < 20'000; ++i) entries.emplace_back("key " + std::to_string(i), std::string(100, 'x'));
  EXPECT_EQ(round_trip(Value(entries)), Value(entries));
}

TEST(ChannelCodec, ValuesNestTo64LevelsAndNoDeeper) {
  for (const Value& innermost : {Value(1), list()}) {
    const std::size_t most = innermost.is_list() ? max_value_depth - 1 : max_value_depth;
    EXPECT_EQ(round_trip(nested(most, innermost)), nested(most, innermost));
    EXPECT_THAT(message_of<InvalidArgument>([&] { encoded(Assignment{"entry", nested(most + 1, innermost)}); }),
                HasSubstr("nested deeper than the 64 levels"));
  }
}

TEST(ChannelCodec, AResultNestsLessDeepSoThatItFitsIntoWhateverCarriesIt) {
  const Value deepest = nested(max_result_depth - 1, 1);  // the metrics are a level themselves
  const Metrics metrics{{"a", deepest}};
  EXPECT_EQ(std::get<Report>(decode_message(body(encoded(Report{1, metrics, ""})))).metrics, metrics);
  EXPECT_NO_THROW(encoded(Assignment{"entry", Dict{{"checkpoint_metrics", metrics.dict()}}}));
  EXPECT_THAT(message_of<InvalidArgument>([&] { encoded(Report{1, Metrics{{"a", list(deepest)}}, ""}); }),
              HasSubstr("nested deeper than the 54 levels"));
}

// Returns a report that was not made with encode(), as a faulty worker may send it.
Bytes forged_report(const std::function<void(wire::Value::Builder)>& fill) {
  capnp::MallocMessageBuilder message;
  auto root = message.initRoot<wire::FromWorker>();
  root.setVersion(wire::VERSION);
  fill(root.initReport().initMetrics(1)[0].initValue());
  const auto words = capnp::messageToFlatArray(message);
  const auto bytes = std::as_bytes(std::span(words.begin(), words.size()));
  return {bytes.begin(), bytes.end()};
}

TEST(ChannelCodec, AForgedReportThatIsTooDeepOrTooLargeIsRefused) {
  const Bytes deep = forged_report([](wire::Value::Builder value) {
    for (std::size_t level = 0; level < max_result_depth; ++level) value = value.initList(1)[0];
  });
  EXPECT_THAT(message_of<ProtocolError>([&] { decode_message(deep); }), HasSubstr("nested deeper than the 54 levels"));
  const Bytes large = forged_report([](wire::Value::Builder value) { value.initText(base::max_result_bytes); });
  EXPECT_THAT(message_of<ProtocolError>([&] { decode_message(large); }), HasSubstr("over the limit of 33554432"));
}

TEST(ChannelCodec, AResultFitsIntoAnAssignmentWithItsConfig) {
  const std::string most(base::max_result_bytes - 200, 'x');
  const Metrics metrics{{"a", most}};
  EXPECT_NO_THROW(encoded(Report{1, metrics, ""}));
  EXPECT_NO_THROW(encoded(Assignment{"entry", Dict{{"checkpoint_metrics", metrics.dict()}, {"config", most}}}));
  EXPECT_THAT(message_of<InvalidArgument>([&] { encoded(Report{1, Metrics{{"a", most + most}}, ""}); }),
              HasSubstr("over the limit of 33554432"));
}

TEST(ChannelCodec, MessagesGrowTo64MiBAndNoFurther) {
  const std::string most(max_message_bytes - 200, 'x');
  EXPECT_EQ(round_trip(most), Value(most));
  EXPECT_THAT(message_of<InvalidArgument>([] { encoded(Assignment{"entry", std::string(max_message_bytes, 'x')}); }),
              HasSubstr("over the limit of 67108864; keep large data in files"));
}

TEST(ChannelCodec, WhatAFunctionHasReturnedArrives) {
  const Value returned = list(1, "text", 0.5);
  EXPECT_EQ(std::get<Finished>(decode_message(body(encoded(Finished{returned})))).value, returned);
  EXPECT_TRUE(std::get<Finished>(decode_message(body(encoded(Finished{})))).value.is_null());
}

TEST(ChannelCodec, CallsOfAStoreArriveByteForByte) {
  const std::string bytes("a\0\xff", 3);
  using Operation = StoreRequest::Operation;
  for (const Operation operation : {Operation::set, Operation::get, Operation::wait, Operation::contains,
                                    Operation::add, Operation::compare_and_set, Operation::erase, Operation::size}) {
    const StoreRequest request{.operation = operation,
                               .keys = {"a/b", ""},
                               .value = bytes,
                               .expected = "expected",
                               .amount = -7,
                               .timeout_ms = 1'800'000,
                               .call = 1ull << 40};
    EXPECT_EQ(std::get<StoreRequest>(decode_message(body(encoded(request)))), request);
  }
  const StoreReply reply{.value = bytes, .number = -1, .error = "why", .call = 7};
  EXPECT_EQ(std::get<StoreReply>(decode_from_controller(body(encoded(reply)))), reply);
}

TEST(ChannelCodec, QuestionsRepliesAndNoticesArrive) {
  const Value content = list(1, "text", Dict{{"key", 0.5}});
  const Message request = decode_message(body(encoded(Request{content, 7})));
  EXPECT_EQ(std::get<Request>(request).content, content);
  EXPECT_EQ(std::get<Request>(request).call, 7u);
  EXPECT_EQ(std::get<Notice>(decode_message(body(encoded(Notice{content})))).content, content);
  const Reply reply{.content = content, .error = "why", .call = 7};
  EXPECT_EQ(std::get<Reply>(decode_from_controller(body(encoded(reply)))), reply);
}

TEST(ChannelCodec, AReportMayHaveDetails) {
  const Report report{.step = 1, .metrics = {{"loss", 1}}, .checkpoint = "a", .details = list("more")};
  EXPECT_EQ(std::get<Report>(decode_message(body(encoded(report)))).details, report.details);
  EXPECT_TRUE(std::get<Report>(decode_message(body(encoded(Report{.step = 1})))).details.is_null());
}

TEST(ChannelCodec, AnotherVersionIsRefusedByItsNumber) {
  Bytes frame = encoded(Finished{});
  constexpr std::size_t version_at = frame_header_bytes + 8 + 8;  // segment table, root pointer
  ASSERT_EQ(frame[version_at], std::byte{4});
  frame[version_at] = std::byte{5};
  EXPECT_THAT(message_of<ProtocolError>([&] { decode_message(body(frame)); }),
              HasSubstr("protocol version 5; this program speaks version 4"));
}

// Pointers of a forged message may share a target, so that a small message expands without end.
TEST(ChannelCodec, AListThatContainsItselfIsRefused) {
  Bytes frame = encoded(Assignment{"", list(list(1))});
  std::mt19937_64 random(1);
  for (int i = 0; i < 20'000; ++i) {
    Bytes forged = frame;
    const std::size_t word = 2 + random() % (forged.size() / 8 - 2);
    const std::size_t from = 2 + random() % (forged.size() / 8 - 2);
    std::memcpy(forged.data() + word * 8, frame.data() + from * 8, 8);
    forged[word * 8] = static_cast<std::byte>(random());
    try {
      decode_from_controller(body(forged));
    } catch (const ProtocolError&) {
    }
  }
}

Report report_of_all_kinds() { return {3, Metrics(all_kinds().dict()), "checkpoint"}; }

TEST(ChannelCodec, EveryTruncationIsAnErrorOrEqual) {
  const Bytes frame = encoded(report_of_all_kinds());
  for (std::size_t size = 0; size < body(frame).size(); ++size) {
    const Bytes cut(body(frame).begin(), body(frame).begin() + static_cast<std::ptrdiff_t>(size));  // exact, for asan
    EXPECT_THROW(decode_message(cut), ProtocolError) << size;
  }
}

TEST(ChannelCodec, EveryFlippedBitIsReadWithoutHarmOrRefused) {
  const Bytes frame = encoded(report_of_all_kinds());
  Bytes flipped(body(frame).begin(), body(frame).end());
  for (std::size_t bit = 0; bit < flipped.size() * 8; ++bit) {
    flipped[bit / 8] ^= std::byte{1} << bit % 8;
    try {
      decode_message(flipped);
    } catch (const ProtocolError&) {
    }
    flipped[bit / 8] ^= std::byte{1} << bit % 8;
  }
  EXPECT_EQ(std::get<Report>(decode_message(flipped)).metrics, report_of_all_kinds().metrics);
}

TEST(ChannelCodec, RandomBytesAreReadWithoutHarmOrRefused) {
  const Bytes frame = encoded(report_of_all_kinds());
  std::mt19937_64 random(2);
  for (int i = 0; i < 20'000; ++i) {
    Bytes damaged(body(frame).begin(), body(frame).end());
    for (std::uint64_t flips = 1 + random() % 16; flips > 0; --flips) {
      damaged[random() % damaged.size()] = static_cast<std::byte>(random());
    }
    try {
      decode_message(damaged);
    } catch (const ProtocolError&) {
    }
  }
}

TEST(ChannelCodec, UnalignedBytesAreRead) {
  const Bytes frame = encoded(report_of_all_kinds());
  Bytes shifted(frame.size() + 1);
  std::memcpy(shifted.data() + 1, body(frame).data(), body(frame).size());
  const auto back = decode_message(std::span(shifted).subspan(1, body(frame).size()));
  EXPECT_EQ(std::get<Report>(back).metrics, report_of_all_kinds().metrics);
}

// ---- frames

void feed(FrameReader& reader, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const auto space = reader.space();
    const std::size_t size = std::min(space.size(), bytes.size());
    std::memcpy(space.data(), bytes.data(), size);
    reader.received(size);
    bytes = bytes.subspan(size);
  }
}

TEST(ChannelCodec, AWorkersLastMessageIsKnownWithoutBeingRead) {
  for (const Bytes& last : {encoded(Finished{3}), encoded(Failed{"why"}), encoded(Declined{})})
    EXPECT_TRUE(is_last_message(body(last)));
  for (const Bytes& other :
       {encoded(Report{.step = 1}), encoded(StoreRequest{}), encoded(Request{}), encoded(Notice{})})
    EXPECT_FALSE(is_last_message(body(other)));
  EXPECT_FALSE(is_last_message({}));
  EXPECT_FALSE(is_last_message(Bytes(64, std::byte{255})));
}

TEST(ChannelFrame, MessagesComeWholeHoweverTheyAreCut) {
  Bytes stream;
  for (int i = 0; i < 50; ++i) {
    const Bytes frame = encoded(Failed{std::string(static_cast<std::size_t>(i * i * 17), 'x')});
    stream.insert(stream.end(), frame.begin(), frame.end());
  }
  for (const std::size_t piece : {std::size_t{1}, std::size_t{7}, std::size_t{4096}, stream.size()}) {
    FrameReader reader;
    std::size_t found = 0;
    for (std::size_t at = 0; at < stream.size(); at += piece) {
      feed(reader, std::span(stream).subspan(at, std::min(piece, stream.size() - at)));
      for (auto next = reader.next(); next; next = reader.next(), ++found) {
        EXPECT_EQ(std::get<Failed>(decode_message(*next)).message.size(), found * found * 17);
      }
    }
    EXPECT_EQ(found, 50U);
    EXPECT_FALSE(reader.next());
  }
}

TEST(ChannelFrame, WhatDoesNotStartWithTheMarkIsRefused) {
  FrameReader reader;
  const std::string text = "hello, controller";
  feed(reader, std::as_bytes(std::span(text)));
  EXPECT_THAT(message_of<ProtocolError>([&] { reader.next(); }), HasSubstr("does not start with the mark of one"));
}

TEST(ChannelFrame, ALengthOverTheLimitIsRefusedBeforeItArrives) {
  for (const std::uint32_t length : {std::uint32_t{max_message_bytes} + 8, ~std::uint32_t{0}, std::uint32_t{12}}) {
    const std::uint32_t header[2] = {frame_magic, length};
    FrameReader reader;
    feed(reader, std::as_bytes(std::span(header)));
    EXPECT_THAT(message_of<ProtocolError>([&] { reader.next(); }),
                HasSubstr("claims to have " + std::to_string(length)));
  }
}

TEST(ChannelFrame, MemoryGrowsWithWhatArrivesNotWithWhatIsPromised) {
  const std::uint32_t header[2] = {frame_magic, std::uint32_t{max_message_bytes}};
  FrameReader reader;
  feed(reader, std::as_bytes(std::span(header)));
  EXPECT_FALSE(reader.next());
  EXPECT_LE(reader.space().size(), std::size_t{64} << 10);
}

}  // namespace
}  // namespace cadre::channel
