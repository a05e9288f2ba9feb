#include "store/segment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cadre/error.h"
#include "store/experiment_reader.h"
#include "store/experiment_store.h"
#include "store/sqlite.h"
#include "support/store_content.h"
#include "support/temporary_directory.h"

namespace cadre::store {
namespace {

namespace fs = std::filesystem;
using test_support::TemporaryDirectory;

// A changing store, and the store restored from its segments.
class SegmentTest : public testing::Test {
 protected:
  SegmentTest() {
    fs::create_directory(directory_ / "source");
    store_.emplace(ExperimentStore::create(directory_ / "source", {"name", "f", "{}"}));
    writer_.emplace(directory_ / "source");
  }

  // Makes one change of each kind that an experiment makes.
  void change(std::int64_t step) {
    const std::int64_t sequence = store_->add(ResultRow{.time = 0.5, .trial = step % 3, .metrics = "{\"x\": NaN}"});
    store_->add(EventRow{.kind = "function_returned"});
    store_->add(DecisionRow{.cause = sequence, .kind = "pause"});
    store_->put(
        TrialRow{.trial = step % 3, .status = step > 10 ? "TERMINATED" : "RUNNING", .config = std::to_string(step)});
    store_->add(CheckpointRow{.id = step, .directory = "c" + std::to_string(step)});
    if (step > 2) store_->remove_checkpoint(step - 2);
    if (step > 1) store_->set_checkpoint_synced(step - 1, "{\"sealed\": 1}");
    store_->put_callback_states(std::to_string(step));
    store_->commit();
  }

  std::optional<SegmentWriter::Segment> write(SegmentWriter::Range range, const std::string& name) {
    const auto segment = writer_->write(directory_ / name, range);
    if (segment) {
      writer_->keep();
      position_ = segment->position;
    }
    return segment;
  }
  void add_segment() {
    const auto number = static_cast<std::int64_t>(segments_.size()) + 1;
    const std::string name = std::to_string(number);
    ASSERT_TRUE(write({position_, number - 1, number, false, number == 1}, name));
    segments_.push_back(directory_ / name);
  }
  void expect_same(const std::vector<fs::path>& segments) {
    const TemporaryDirectory target;
    build_store(target.path(), segments);
    EXPECT_EQ(position_of(target.path()), position_of(directory_ / "source"));
    const ExperimentStore made = ExperimentStore::open(target.path());
    EXPECT_EQ(test_support::content_of_store(made), test_support::content_of_store(*store_));
    EXPECT_EQ(made.callback_states(), store_->callback_states());
  }

  TemporaryDirectory directory_;
  std::optional<ExperimentStore> store_;
  std::optional<SegmentWriter> writer_;
  Position position_;
  std::vector<fs::path> segments_;
};

TEST_F(SegmentTest, MakeTheSameStoreAgain) {
  for (std::int64_t step = 1; step <= 12; ++step) {
    change(step);
    if (step % 4 == 0) add_segment();
  }
  expect_same(segments_);
}

TEST_F(SegmentTest, NothingNewMakesNone) {
  change(1);
  add_segment();
  EXPECT_FALSE(write({position_, 1, 2}, "2"));
  EXPECT_FALSE(fs::exists(directory_ / "2"));
}

TEST_F(SegmentTest, OneTakesThePlaceOfSeveral) {
  change(1);
  add_segment();
  const Position after_first = position_;
  for (std::int64_t step = 2; step <= 9; ++step) {
    change(step);
    add_segment();
  }
  change(10);
  ASSERT_TRUE(write({after_first, 1, 10, true}, "merged"));
  expect_same({segments_[0], directory_ / "merged"});
  change(11);
  ASSERT_TRUE(write({position_, 10, 11}, "next"));
  expect_same({segments_[0], directory_ / "merged", directory_ / "next"});
}

TEST_F(SegmentTest, OneTakesThePlaceOfThoseThatDidSoBefore) {
  change(1);
  ASSERT_TRUE(write({{}, 0, 1, false, true}, "1"));
  change(2);
  ASSERT_TRUE(write({{}, 0, 2, true}, "2"));
  change(4);  // of the same trial as the first change
  ASSERT_TRUE(write({{}, 0, 3, true}, "3"));
  expect_same({directory_ / "3"});
}

TEST_F(SegmentTest, AnotherSessionKnowsNothingOfTheTables) {
  for (std::int64_t step = 1; step <= 4; ++step) change(step);
  add_segment();
  writer_.emplace(directory_ / "source");
  for (std::int64_t step = 5; step <= 9; ++step) change(step);
  ASSERT_TRUE(write({position_, 1, 2, false, true}, "2"));
  expect_same({segments_[0], directory_ / "2"});
}

TEST_F(SegmentTest, OneThatWasNotPublishedIsRepeatedByTheNext) {
  change(1);
  add_segment();
  change(2);
  ASSERT_TRUE(writer_->write(directory_ / "lost", {position_, 1, 2}));
  change(3);
  ASSERT_TRUE(write({position_, 1, 3}, "3"));
  expect_same({segments_[0], directory_ / "3"});
}

TEST_F(SegmentTest, ThoseThatDoNotFollowEachOtherAreRefused) {
  for (std::int64_t step = 1; step <= 3; ++step) {
    change(step);
    add_segment();
  }
  const TemporaryDirectory target;
  EXPECT_THROW(build_store(target.path(), {segments_[0], segments_[2]}), StorageError);
  EXPECT_THROW(build_store(target.path(), {segments_[1]}), StorageError);
  EXPECT_TRUE(fs::is_empty(target.path()));
}

TEST_F(SegmentTest, SaysWhichFilesAreSafe) {
  change(1);
  add_segment();
  set_manifests(segments_[0], {{1, "{\"f\": {}}"}, {77, "{}"}});
  const TemporaryDirectory target;
  build_store(target.path(), segments_);
  const auto rows = ExperimentReader(target.path(), ExperimentReader::Check::whole).checkpoints();
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_TRUE(rows[0].synced);
  EXPECT_EQ(rows[0].manifest, "{\"f\": {}}");
}

TEST_F(SegmentTest, NotesPlacesOfCheckpointsUntilTheyAreRemoved) {
  change(1);
  change(2);
  add_segment();
  set_places(segments_[0], {{1, "one"}, {2, "two"}, {77, "of another one"}});
  change(3);
  add_segment();
  const TemporaryDirectory two;
  EXPECT_EQ(build_store(two.path(), segments_), (Places{{2, "two"}}));
  change(4);
  ASSERT_TRUE(write({{}, 0, 3, true, false}, "all"));
  set_places(directory_ / "all", {{3, "three"}});
  expect_same({directory_ / "all"});
  const TemporaryDirectory all;
  EXPECT_EQ(build_store(all.path(), {directory_ / "all"}), (Places{{3, "three"}}));
}

TEST_F(SegmentTest, HasTheFormatOfBeforeWhereNoCheckpointHasAPlace) {
  change(1);
  add_segment();
  set_places(segments_[0], {});
  const auto format = [&] {
    Database segment(segments_[0], Database::Access::immutable);
    Statement statement(segment, "SELECT value FROM segment WHERE key = 'format'");
    return statement.step() ? std::string(statement.text(0)) : "";
  };
  EXPECT_EQ(format(), "1");
  set_places(segments_[0], {{1, "one"}});
  EXPECT_EQ(format(), "2");
}

TEST_F(SegmentTest, AStoreKnowsWhetherItHasPassedAPosition) {
  change(1);
  const Position before = position_of(directory_ / "source");
  change(2);
  EXPECT_TRUE(has_passed(directory_ / "source", before));
  EXPECT_TRUE(has_passed(directory_ / "source", {}));
  Position other = before;
  other.row ^= 1;
  EXPECT_FALSE(has_passed(directory_ / "source", other));
  other = before;
  other.sequence += 100;
  EXPECT_FALSE(has_passed(directory_ / "source", other));
}

}  // namespace
}  // namespace cadre::store
