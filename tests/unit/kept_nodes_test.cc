#include "engine/cluster/kept_nodes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>

#include "base/file.h"
#include "cadre/error.h"
#include "support/message_of.h"
#include "support/temporary_directory.h"

namespace cadre::engine::cluster {
namespace {

namespace fs = std::filesystem;
using test_support::message_of;
using test_support::TemporaryDirectory;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

const NodeRequest kTraining{.group = "train", .nodes = 4, .gpus = 8, .options = {{"partition", "a100"}}};
const NodeRequest kValidation{.group = "validate", .nodes = 1};

NodeRequest numbered(NodeRequest request, std::uint64_t id, std::int64_t nodes) {
  request.id = id;
  request.nodes = nodes;
  return request;
}

KeptNodes some_nodes() {
  return {
      .host = "login1",
      .provider = "jobs of Slurm",
      .build = "0123abcd",
      .command = {"/opt/train", "--epochs", "100"},
      .working_directory = "/home/somebody",
      .port = 40123,
      .identity = {.certificate = "-----BEGIN CERTIFICATE-----\nabc\n", .key = "-----BEGIN PRIVATE KEY-----\nxyz\n"},
      .secret = "00ff",
      .jobs = "login1-12-1700000000-1",
      .requests = {{numbered(kTraining, 1, 4), {0, 2}}, {numbered(kValidation, 3, 1), {}}},
      .processes = {{.request = 1, .ordinal = 1, .pid = 4711, .mark = "aa"}, {.request = 3, .pid = 4712, .mark = "bb"}},
      .connected = {{.request = 1, .ordinal = 1, .name = "a1"}, {.request = 3, .ordinal = 0, .name = "b7"}},
      .last_request = 3,
      .last_node = 9};
}

// ---- The file

TEST(KeptNodes, AreReadAsTheyWereWritten) {
  const TemporaryDirectory directory;
  write_kept_nodes(directory.path(), some_nodes());
  EXPECT_EQ(read_kept_nodes(directory.path()), some_nodes());
  KeptNodes others = some_nodes();
  others.last_node = 10;
  write_kept_nodes(directory.path(), others);
  EXPECT_EQ(read_kept_nodes(directory.path()), others);
  remove_kept_nodes(directory.path());
  EXPECT_EQ(read_kept_nodes(directory.path()), std::nullopt);
  EXPECT_TRUE(fs::is_empty(directory.path()));
  remove_kept_nodes(directory.path());
}

TEST(KeptNodes, AreForThisUserOnly) {
  const TemporaryDirectory directory;
  const fs::path file = directory.path() / kNodesFile;
  const mode_t before = ::umask(0);
  write_kept_nodes(directory.path(), some_nodes());
  ::umask(before);
  EXPECT_EQ(fs::status(file).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  for (const fs::perms more : {fs::perms::group_read, fs::perms::others_write}) {
    fs::permissions(file, fs::perms::owner_read | fs::perms::owner_write | more);
    EXPECT_THAT(message_of<StorageError>([&] { read_kept_nodes(directory.path()); }),
                HasSubstr(file.string() + " does not lead to the nodes of an earlier process: it is no file that only "
                                          "this user can read and write"));
  }
  write_kept_nodes(directory.path(), some_nodes());
  EXPECT_EQ(fs::status(file).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  fs::rename(file, directory.path() / "elsewhere");
  fs::create_symlink("elsewhere", file);
  EXPECT_THROW(read_kept_nodes(directory.path()), StorageError);
}

TEST(KeptNodes, OfACopiedDirectoryAreThoseOfTheOriginal) {
  const TemporaryDirectory folder;
  fs::create_directory(folder.path() / "original");
  write_kept_nodes(folder.path() / "original", some_nodes());
  fs::copy(folder.path() / "original", folder.path() / "copy", fs::copy_options::recursive);
  EXPECT_THAT(message_of<StorageError>([&] { read_kept_nodes(folder.path() / "copy"); }),
              HasSubstr("it was copied together with its directory"));
  fs::rename(folder.path() / "original", folder.path() / "moved");
  EXPECT_EQ(read_kept_nodes(folder.path() / "moved"), some_nodes());
}

TEST(KeptNodes, ThatWereCutOffAreRefused) {
  const std::string text = to_text(some_nodes(), "1.2");
  for (std::size_t size = 0; size + 1 < text.size(); ++size)
    EXPECT_THROW(parse_kept_nodes(text.substr(0, size), "1.2"), StorageError) << size;
}

TEST(KeptNodes, WithAFlippedBitAreRefusedUnlessNothingHasChanged) {
  const std::string text = to_text(some_nodes(), "1.2");
  for (std::size_t bit = 0; bit < text.size() * 8; ++bit) {
    std::string flipped = text;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    try {
      EXPECT_EQ(parse_kept_nodes(flipped, "1.2"), some_nodes()) << bit;
    } catch (const StorageError&) {
    }
  }
}

TEST(KeptNodes, InANewerFormatAreRefused) {
  std::string text = to_text(some_nodes(), "1.2");
  const std::string format = "\"format\": 3";
  ASSERT_THAT(text, HasSubstr(format));
  text.replace(text.find(format), format.size(), "\"format\": 4");
  EXPECT_THAT(message_of<StorageError>([&] { parse_kept_nodes(text, "1.2"); }),
              HasSubstr("it has format 4, and this program reads format 3"));
}

TEST(KeptNodes, SayWhatWaitsToReadersOfTheRun) {
  const TemporaryDirectory directory;
  EXPECT_EQ(read_waiting_nodes(directory.path()), std::nullopt);
  const std::vector<WaitingNodes> waiting{
      {.group = "train", .nodes = 3, .reason = "Resources", .expected_start = 1795741183},
      {.group = "validate", .nodes = 1}};
  write_kept_nodes(directory.path(), some_nodes(), waiting);
  EXPECT_EQ(read_waiting_nodes(directory.path()), waiting);
  EXPECT_EQ(read_kept_nodes(directory.path()), some_nodes());
  fs::permissions(directory.path() / kNodesFile, fs::perms::all);
  EXPECT_THAT(message_of<StorageError>([&] { read_waiting_nodes(directory.path()); }),
              HasSubstr((directory.path() / kNodesFile).string() + ": it is no file that only this user can"));
}

// ---- Whose they are

TEST(KeptNodes, AreOfUseToTheSameProgramOnTheSameMachineOnly) {
  const KeptNodes kept = some_nodes();
  KeptNodes own = {.host = kept.host,
                   .provider = kept.provider,
                   .build = kept.build,
                   .command = kept.command,
                   .working_directory = kept.working_directory};
  EXPECT_EQ(fault_of(kept, own), "");
  const auto fault_with = [&](auto member, const auto& value) {
    KeptNodes other = own;
    other.*member = value;
    return fault_of(kept, other);
  };
  EXPECT_EQ(fault_with(&KeptNodes::host, "login2"), "they dial login1, and this is login2");
  EXPECT_EQ(fault_with(&KeptNodes::provider, "steps of Slurm"),
            "they are jobs of Slurm, and this program asks for steps of Slurm");
  EXPECT_THAT(fault_with(&KeptNodes::build, "4567"), HasSubstr("another build"));
  EXPECT_THAT(fault_with(&KeptNodes::command, std::vector<std::string>{"/opt/train"}), HasSubstr("other arguments"));
  EXPECT_THAT(fault_with(&KeptNodes::working_directory, "/tmp"), HasSubstr("in /home/somebody, and this is /tmp"));
}

// ---- Requests

TEST(ContinuedRequests, AreClaimedByTheSameKind) {
  const std::vector<KeptRequest> kept = {{numbered(kTraining, 1, 4), {}}, {numbered(kValidation, 2, 1), {}}};
  const Continuation continuation = continue_requests(kept, {kTraining, kValidation});
  EXPECT_EQ(continuation.claimed, kept);
  EXPECT_THAT(continuation.surplus, IsEmpty());
  EXPECT_THAT(continuation.missing, IsEmpty());
}

TEST(ContinuedRequests, WithReplacementsMakeUpOneGroup) {
  const std::vector<KeptRequest> kept = {
      {numbered(kTraining, 1, 4), {1, 3}}, {numbered(kTraining, 2, 1), {}}, {numbered(kTraining, 3, 1), {}}};
  const Continuation continuation = continue_requests(kept, {kTraining});
  EXPECT_EQ(continuation.claimed, kept);
  EXPECT_THAT(continuation.surplus, IsEmpty());
  EXPECT_THAT(continuation.missing, IsEmpty());
}

TEST(ContinuedRequests, OfAnotherKindAreForNobody) {
  NodeRequest other = kTraining;
  other.options["partition"] = "h100";
  const Continuation continuation =
      continue_requests({{numbered(kTraining, 1, 4), {}}, {numbered(kValidation, 2, 1), {}}}, {other, kValidation});
  EXPECT_THAT(continuation.claimed, ElementsAre(KeptRequest{numbered(kValidation, 2, 1), {}}));
  EXPECT_THAT(continuation.missing, ElementsAre(other));
}

TEST(ContinuedRequests, LackTheNodesThatNobodyHasAskedForYet) {
  const Continuation continuation = continue_requests({{numbered(kTraining, 1, 4), {1, 3}}}, {kTraining});
  EXPECT_THAT(continuation.missing, ElementsAre(numbered(kTraining, 0, 2)));
}

TEST(ContinuedRequests, GiveBackMoreNodesThanAreWantedNow) {
  const std::vector<KeptRequest> kept = {{numbered(kTraining, 1, 4), {3}}, {numbered(kTraining, 2, 1), {}}};
  const Continuation continuation = continue_requests(kept, {numbered(kTraining, 0, 2)});
  EXPECT_THAT(continuation.claimed, ElementsAre(kept[0]));
  EXPECT_THAT(continuation.surplus, ElementsAre(Pair(1, 2)));
  EXPECT_THAT(continuation.missing, IsEmpty());
}

TEST(ContinuedRequests, ThatAreOfUseOnlyTogetherAreClaimedWhole) {
  NodeRequest gang = kTraining;
  gang.all_or_none = true;
  const std::vector<KeptRequest> kept = {{numbered(gang, 1, 4), {}}};
  EXPECT_EQ(continue_requests(kept, {gang}).claimed, kept);
  const Continuation fewer = continue_requests(kept, {numbered(gang, 0, 3)});
  EXPECT_THAT(fewer.claimed, IsEmpty());
  EXPECT_THAT(fewer.missing, ElementsAre(numbered(gang, 0, 3)));
}

TEST(ContinuedRequests, AreClaimedOnceByGroupsThatAreAlike) {
  const std::vector<KeptRequest> kept = {{numbered(kTraining, 1, 4), {}}};
  const Continuation continuation = continue_requests(kept, {kTraining, kTraining});
  EXPECT_EQ(continuation.claimed, kept);
  EXPECT_THAT(continuation.missing, ElementsAre(kTraining));
}

}  // namespace
}  // namespace cadre::engine::cluster
