#include "tune/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/directory.h"
#include "base/json.h"
#include "base/value_limits.h"
#include "cadre/error.h"
#include "channel/codec.h"
#include "channel/worker_end.h"
#include "support/temporary_directory.h"
#include "worker/worker.h"

namespace cadre::tune {
namespace {

namespace fs = std::filesystem;
using ::testing::IsEmpty;
using ::testing::StartsWith;

// Returns a value nested deeper than a message may be.
Value too_deep() {
  Value value = 1;
  for (std::size_t i = 0; i < base::max_value_depth + 1; ++i) value = list(std::move(value));
  return value;
}

// A worker's session, and the controller's end of its connection, where tests put answers before the session asks for
// them.
class SessionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    int sockets[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
    controller_ = base::FileDescriptor(sockets[0]);
    worker_.emplace(base::FileDescriptor(sockets[1]));
    fs::create_directory(trial_);
    session_.emplace(*worker_,
                     TrialAssignment{.trial_id = "00000",
                                     .trial_directory = trial_.string(),
                                     .attempt = 1,
                                     .checkpoint_metrics = {{"training_iteration", 4}, {"timesteps_total", 40}},
                                     .step = 4});
  }

  void will_answer(channel::Verdict verdict) {
    channel::Bytes frame;
    channel::encode(channel::Answer{verdict, ""}, frame);
    ASSERT_EQ(::write(controller_.get(), frame.data(), frame.size()), static_cast<ssize_t>(frame.size()));
  }
  // Returns the next report that has arrived.
  channel::Report received() {
    for (;;) {
      if (const auto body = frames_.next()) return std::get<channel::Report>(channel::decode_message(*body));
      const auto space = frames_.space();
      const ssize_t got = ::recv(controller_.get(), space.data(), space.size(), MSG_DONTWAIT);
      if (got <= 0) throw Error("nothing was reported");
      frames_.received(static_cast<std::size_t>(got));
    }
  }
  std::vector<std::string> directories() const { return base::list_directory(trial_); }

  test_support::TemporaryDirectory directory_;
  fs::path trial_ = directory_ / "trial";
  base::FileDescriptor controller_;
  channel::FrameReader frames_;
  std::optional<channel::WorkerEnd> worker_;
  std::optional<Session> session_;
};

TEST_F(SessionTest, AReportThatIsRefusedCountsForNothing) {
  EXPECT_THROW(report({{"loss", too_deep()}, {"time_this_iter_s", 5}, {"timesteps_this_iter", 10}}), InvalidArgument);
  will_answer(channel::Verdict::go_on);
  report({{"loss", 0.5}, {"time_this_iter_s", 2}, {"timesteps_this_iter", 10}});
  const channel::Report sent = received();
  EXPECT_EQ(sent.step, 5);
  EXPECT_EQ(sent.metrics.at("training_iteration"), Value(5));
  EXPECT_EQ(sent.metrics.at("iterations_since_restore"), Value(1));
  EXPECT_EQ(sent.metrics.number("time_total_s"), 2);
  EXPECT_EQ(sent.metrics.number("time_since_restore"), 2);
  EXPECT_EQ(sent.metrics.at("timesteps_total"), Value(50));
}

TEST_F(SessionTest, ACheckpointThatWasToBeReportedWithARefusedReportIsRemoved) {
  const auto write = [](const fs::path& directory) { test_support::write_bytes(directory / "model.pt", "model"); };
  EXPECT_THROW(report({{"loss", too_deep()}}, write), InvalidArgument);
  EXPECT_THAT(directories(), IsEmpty());
}

// Makes three reports, and checks which writers ran and which were only offered.
TEST_F(SessionTest, AWriterIsCalledWhenTheControllerAsksForItAndOtherwiseOnlyOffered) {
  int written = 0;
  const auto write = [&](const fs::path& directory) {
    test_support::write_bytes(directory / "model.pt", std::to_string(++written));
  };
  will_answer(channel::Verdict::go_on);
  report({{"loss", 0.5}}, write);
  EXPECT_TRUE(received().offers_checkpoint);
  EXPECT_EQ(written, 0);
  EXPECT_THAT(directories(), IsEmpty());

  will_answer(channel::Verdict::save);
  will_answer(channel::Verdict::go_on);
  report({{"loss", 0.25}}, write);
  const channel::Report first = received();
  const channel::Report second = received();
  EXPECT_TRUE(first.offers_checkpoint);
  EXPECT_EQ(first.checkpoint, "");
  EXPECT_FALSE(second.offers_checkpoint);
  EXPECT_EQ(second.step, first.step);
  EXPECT_EQ(second.metrics, first.metrics);
  EXPECT_EQ(test_support::content_of(trial_ / second.checkpoint / "model.pt"), "1");

  will_answer(channel::Verdict::go_on);
  report({{"loss", 0.2}, {"should_checkpoint", true}}, write);
  const channel::Report asked = received();
  EXPECT_EQ(asked.step, first.step + 1);
  EXPECT_FALSE(asked.offers_checkpoint);
  EXPECT_EQ(test_support::content_of(trial_ / asked.checkpoint / "model.pt"), "2");
}

TEST_F(SessionTest, AWriterThatThrowsWhenTheResultIsThereAlreadyCostsTheCheckpointOnly) {
  will_answer(channel::Verdict::save);
  EXPECT_THROW(report({{"loss", 0.5}}, [](const fs::path&) { throw Error("no model"); }), Error);
  EXPECT_EQ(received().step, 5);
  EXPECT_THAT(directories(), IsEmpty());
  will_answer(channel::Verdict::go_on);
  report({{"loss", 0.25}});
  EXPECT_EQ(received().step, 6);
}

TEST_F(SessionTest, TheSeedIsAnotherOneAfterEachReportAndTheSameForTheSameStep) {
  const std::uint64_t before = get_context().get_seed();
  EXPECT_EQ(get_context().get_seed(), before);
  will_answer(channel::Verdict::go_on);
  report({{"loss", 0.5}});
  const std::uint64_t after = get_context().get_seed();
  EXPECT_NE(after, before);
  session_.reset();
  session_.emplace(*worker_, TrialAssignment{.trial_id = "00000", .trial_directory = trial_.string(), .step = 5});
  EXPECT_EQ(get_context().get_seed(), after) << "as after an interruption";
  session_.reset();
  session_.emplace(*worker_, TrialAssignment{.trial = 1, .trial_id = "00001", .step = 5});
  EXPECT_NE(get_context().get_seed(), after) << "another trial's, which continues from the same checkpoint";
}

TEST_F(SessionTest, ACheckpointCanBeReportedAgainAfterItsReportWasRefused) {
  const Checkpoint checkpoint = [&] {
    CheckpointDirectory directory = make_checkpoint_directory();
    test_support::write_bytes(directory.path() / "model.pt", "model");
    return Checkpoint::from_directory(std::move(directory));
  }();
  EXPECT_THROW(report({{"loss", too_deep()}}, checkpoint), InvalidArgument);
  will_answer(channel::Verdict::go_on);
  report({{"loss", 0.5}}, checkpoint);
  const std::string name = received().checkpoint;
  EXPECT_EQ(directories(), std::vector{name});
  EXPECT_EQ(test_support::content_of(trial_ / name / "model.pt"), "model");
  const Value metadata = base::parse_json(test_support::content_of(trial_ / name / ".metadata.json"), "metadata");
  EXPECT_EQ(to_json(*find_entry(metadata.dict(), "files")), R"({"model.pt": {"size": 5}})");
}

TEST_F(SessionTest, AReportedDirectoryIsTheControllersEvenWhereTheTrialIsToldToStop) {
  const fs::path mine = directory_ / "mine";
  fs::create_directory(mine);
  test_support::write_bytes(mine / "model.pt", "model");
  will_answer(channel::Verdict::stop);
  EXPECT_THROW(report({{"loss", 0.5}}, Checkpoint::from_directory(mine)), worker::StopWorker);
  const std::string name = received().checkpoint;
  EXPECT_THAT(name, StartsWith(".reporting_"));
  EXPECT_EQ(test_support::content_of(trial_ / name / "model.pt"), "model");
  EXPECT_TRUE(fs::exists(mine / "model.pt"));
}

}  // namespace
}  // namespace cadre::tune
