// Messages and greetings between agents and controllers, as bytes and back.
#include "engine/cluster/messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <variant>
#include <vector>

#include "engine/cluster/dialler.h"
#include "engine/cluster/handshake.h"

namespace cadre::engine::cluster {
namespace {

using channel::Bytes;
using channel::ProtocolError;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// Returns the message of a Tell, as its worker reads it.
channel::FromController told_to_worker(const Bytes& bytes) {
  const auto tell = std::get<Tell>(decode_to_agent(bytes));
  return channel::decode_from_controller(tell.frame.subspan(channel::frame_header_bytes));
}

TEST(ClusterMessages, AStartHasAllOfTheSpecButItsNode) {
  const WorkerSpec spec{.assignment = {"train", Value{{"lr", 0.1}}},
                        .node = 3,
                        .directory = "/experiments/here",
                        .needs = {"trial/checkpoint_000000"},
                        .cpus = 2.5,
                        .memory_bytes = std::uint64_t{5} << 33,
                        .starts_workers = true};
  Bytes bytes;
  encode_start(1234567890123, spec, bytes);
  const auto start = std::get<Start>(decode_to_agent(bytes));
  EXPECT_EQ(start.worker, 1234567890123U);
  EXPECT_EQ(start.spec.assignment.entry, "train");
  EXPECT_EQ(start.spec.assignment.payload, (Value{{"lr", 0.1}}));
  EXPECT_EQ(start.spec.directory, "/experiments/here");
  EXPECT_EQ(start.spec.needs, spec.needs);
  EXPECT_EQ(start.spec.cpus, 2.5);
  EXPECT_EQ(start.spec.memory_bytes, std::uint64_t{5} << 33);
  EXPECT_TRUE(start.spec.starts_workers);
}

TEST(ClusterMessages, BytesOfFilesArriveWithWhatTheyAre) {
  const std::vector<std::byte> content(1001, std::byte{0xfe});
  const Piece piece{
      .kind = Piece::Kind::bytes, .place = "trial/c", .path = "a/b", .is_executable = true, .bytes = content};
  Bytes bytes;
  const auto is_the_piece = [&](const Piece& read) {
    return read.kind == piece.kind && read.place == piece.place && read.path == piece.path && read.is_executable &&
           std::ranges::equal(read.bytes, content);
  };
  encode_to_agent(piece, bytes);
  EXPECT_TRUE(is_the_piece(std::get<Piece>(decode_to_agent(bytes))));
  encode_to_controller(piece, bytes);
  EXPECT_TRUE(is_the_piece(std::get<Piece>(decode_to_controller(bytes))));
  encode(Printed{.file = "trial/stdout", .begins_anew = true, .bytes = content}, bytes);
  const auto printed = std::get<Printed>(decode_to_controller(bytes));
  EXPECT_EQ(printed.file, "trial/stdout");
  EXPECT_TRUE(printed.begins_anew);
  EXPECT_TRUE(std::ranges::equal(printed.bytes, content));
}

TEST(ClusterMessages, AnswersAndRepliesArriveAsTheyAre) {
  Bytes bytes;
  encode_tell(7, channel::Answer{.verdict = channel::Verdict::take_over, .checkpoint = "there"}, bytes);
  EXPECT_EQ(std::get<Tell>(decode_to_agent(bytes)).worker, 7U);
  EXPECT_EQ(std::get<channel::Answer>(told_to_worker(bytes)).checkpoint, "there");
  encode_tell(8, channel::StoreReply{.value = "v", .number = 3, .call = 5}, bytes);
  EXPECT_EQ(std::get<channel::StoreReply>(told_to_worker(bytes)),
            (channel::StoreReply{.value = "v", .number = 3, .call = 5}));
  encode_tell(9, channel::Reply{.content = 4, .call = 6}, bytes);
  EXPECT_EQ(std::get<channel::Reply>(told_to_worker(bytes)).content, Value(4));
  encode(Kill{10}, bytes);
  EXPECT_EQ(std::get<Kill>(decode_to_agent(bytes)).worker, 10U);
  encode(Stay{.seconds = 300}, bytes);
  EXPECT_EQ(std::get<Stay>(decode_to_agent(bytes)).seconds, 300);
  encode(Look{.file = "/a/.lock"}, bytes);
  EXPECT_EQ(std::get<Look>(decode_to_agent(bytes)).file, "/a/.lock");
  encode(Fetch{.place = "trial/.reporting_1_0"}, bytes);
  EXPECT_EQ(std::get<Fetch>(decode_to_agent(bytes)).place, "trial/.reporting_1_0");
  encode(Move{.from = "a", .to = "b"}, bytes);
  EXPECT_EQ(std::get<Move>(decode_to_agent(bytes)).to, "b");
  encode(Drop{.place = "a"}, bytes);
  EXPECT_EQ(std::get<Drop>(decode_to_agent(bytes)).place, "a");
  encode(UseStorage{.uri = "s3://a/b", .file = "lease.json"}, bytes);
  EXPECT_EQ(std::get<UseStorage>(decode_to_agent(bytes)).uri, "s3://a/b");
  encode(StoreFiles{.place = "trial/.reporting_1_0", .name = "trial/checkpoint_1_0"}, bytes);
  EXPECT_EQ(std::get<StoreFiles>(decode_to_agent(bytes)).name, "trial/checkpoint_1_0");
  encode(LoadFiles{.place = "a", .name = "b", .files = {{"model", Dict{{"size", 7}}}}}, bytes);
  EXPECT_EQ(std::get<LoadFiles>(decode_to_agent(bytes)).files, (Dict{{"model", Dict{{"size", 7}}}}));
  encode(Leave{}, bytes);
  EXPECT_TRUE(std::holds_alternative<Leave>(decode_to_agent(bytes)));
}

TEST(ClusterMessages, AWorkersMessagesAndItsEndArriveAsTheyAre) {
  Bytes bytes;
  Bytes frame;
  channel::encode(channel::Report{.step = 3, .metrics = {{"loss", 0.5}}, .checkpoint = "c"}, frame);
  encode(Told{7, std::span(frame).subspan(channel::frame_header_bytes)}, bytes);
  const auto told = std::get<Told>(decode_to_controller(bytes));
  EXPECT_EQ(told.worker, 7U);
  EXPECT_EQ(std::get<channel::Report>(channel::decode_message(told.body)).metrics, (Metrics{{"loss", 0.5}}));
  const Exit exit{Exit::Kind::signal, 9, "out of memory", "last lines\nof it"};
  encode(Exited{7, exit}, bytes);
  EXPECT_EQ(std::get<Exited>(decode_to_controller(bytes)).exit, exit);
  encode(Draining{.seconds_left = 2.5, .reason = "preempted"}, bytes);
  EXPECT_EQ(std::get<Draining>(decode_to_controller(bytes)).seconds_left, 2.5);
  encode(Saw{.file = "/a/.lock", .checksum = ~std::uint64_t{0}}, bytes);
  EXPECT_EQ(std::get<Saw>(decode_to_controller(bytes)).checksum, ~std::uint64_t{0});
  encode(TriedStorage{.uri = "s3://a/b", .checksum = ~std::uint64_t{0}}, bytes);
  EXPECT_EQ(std::get<TriedStorage>(decode_to_controller(bytes)).checksum, ~std::uint64_t{0});
  encode(FilesStored{.place = "a", .files = {{"model", Dict{{"size", 7}}}}, .fault = "f"}, bytes);
  EXPECT_EQ(std::get<FilesStored>(decode_to_controller(bytes)).files, (Dict{{"model", Dict{{"size", 7}}}}));
  encode(FilesLoaded{.place = "a", .fault = "f"}, bytes);
  EXPECT_EQ(std::get<FilesLoaded>(decode_to_controller(bytes)).fault, "f");
}

TEST(ClusterMessages, EveryCutAndEveryOtherKindIsRefused) {
  Bytes bytes;
  encode_start(1, {.assignment = {"train", Value{{"lr", 0.1}}}, .directory = "/d"}, bytes);
  for (std::size_t length = 0; length < bytes.size(); length += 8) {
    const Bytes part(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(length));
    EXPECT_THROW(decode_to_agent(part), ProtocolError) << length;
  }
  bytes[0] = std::byte{77};
  EXPECT_THAT([&] { decode_to_agent(bytes); }, ThrowsMessage<ProtocolError>(HasSubstr("unknown kind 77")));
  EXPECT_THAT([&] { decode_to_controller(bytes); }, ThrowsMessage<ProtocolError>(HasSubstr("unknown kind 77")));
}

TEST(Handshake, AHelloArrivesInPiecesAndLeavesWhatFollows) {
  const Hello hello{.build = "b",
                    .version = "1.2.3",
                    .token = "t",
                    .request = 3,
                    .ordinal = 4,
                    .session = 1ULL << 63,
                    .continues = true,
                    .host = "n1",
                    .addresses = {"10.0.0.1", "fd00::1"},
                    .pid = 17,
                    .resources = {.cpus = 4, .gpus = 2, .custom = {{"license", 1}}, .accelerator_type = "H100"}};
  Bytes all;
  append(all, hello);
  all.push_back(std::byte{9});
  Bytes arrived;
  for (std::size_t i = 0; i + 2 < all.size(); ++i) {
    arrived.push_back(all[i]);
    ASSERT_EQ(take_hello(arrived), std::nullopt);
  }
  arrived.insert(arrived.end(), all.end() - 2, all.end());
  EXPECT_EQ(take_hello(arrived), hello);
  EXPECT_EQ(arrived, Bytes{std::byte{9}});
}

TEST(Handshake, AHelloOfAnotherProtocolIsReadAsFarAsItsNumber) {
  Bytes bytes;
  append(bytes, Hello{.protocol = protocol_version + 1, .build = "b"});
  EXPECT_EQ(take_hello(bytes), Hello{.protocol = protocol_version + 1});
}

TEST(Handshake, SomethingElseIsRefusedAtItsFirstByte) {
  Bytes bytes{std::byte{'G'}};
  EXPECT_THAT([&] { take_hello(bytes); }, ThrowsMessage<ProtocolError>(HasSubstr("does not begin with a greeting")));
  Bytes long_one;
  append(long_one, Welcome{.refusal = std::string(max_greeting_bytes, 'x')});
  EXPECT_THAT([&] { take_welcome(long_one); }, ThrowsMessage<ProtocolError>(HasSubstr("the limit is 65536")));
}

TEST(Handshake, ABuildHasAnId) { EXPECT_GE(build_id().size(), 16U); }

TEST(Addresses, GoThereAndBack) {
  const std::vector<Address> addresses{{"10.0.0.1", 5000}, {"fe80::1", 1}};
  EXPECT_EQ(to_text(addresses), "10.0.0.1:5000,[fe80::1]:1");
  EXPECT_EQ(to_addresses(to_text(addresses)), addresses);
}

TEST(Addresses, OtherTextIsRefused) {
  for (const char* text : {"", "10.0.0.1", "10.0.0.1:", "10.0.0.1:x", "10.0.0.1:70000", "name:5", "10.0.0.1:5,"}) {
    EXPECT_THAT([&] { to_addresses(text); }, ThrowsMessage<InvalidArgument>(HasSubstr("is not an IP address"))) << text;
  }
}

}  // namespace
}  // namespace cadre::engine::cluster
