// Batches whose rows were made next to each other, and so are not copied.
#include "data/batch_memory.h"

#include <arrow/api.h>
#include <arrow/extension/fixed_shape_tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "cadre/data.h"
#include "data/adjacent_arrays.h"
#include "data/compute.h"
#include "data/tensor_columns.h"
#include "small_datasets.h"
#include "support/image_file.h"
#include "support/temporary_directory.h"

namespace cadre::data {
namespace {

using test_support::png_of;
using test_support::smooth_pixels;

std::shared_ptr<arrow::Array> numbers(std::vector<std::int16_t> values) { return Column(std::move(values)).arrow(); }

const arrow::Buffer& values_buffer(const arrow::Array& tensors) {
  const auto& storage = dynamic_cast<const arrow::ExtensionArray&>(tensors).storage();
  return *dynamic_cast<const arrow::FixedSizeListArray&>(*storage).values()->data()->buffers[1];
}

TEST(JoinAdjacent, GivesTheArrayThatWasCut) {
  const auto whole = make_tensors(numbers({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}), {2});
  const auto joined = join_adjacent(arrow::ArrayVector{whole->Slice(1, 2), whole->Slice(3, 1), whole->Slice(4, 2)});
  ASSERT_NE(joined, nullptr);
  EXPECT_TRUE(joined->ValidateFull().ok());
  EXPECT_TRUE(joined->Equals(*whole->Slice(1, 5)));
  EXPECT_EQ(values_buffer(*joined).data(), values_buffer(*whole).data() + 4);
}

TEST(JoinAdjacent, RefusesGapsOtherOrdersOtherBuffersAndNulls) {
  const auto whole = numbers({0, 1, 2, 3, 4, 5});
  EXPECT_NE(join_adjacent(arrow::ArrayVector{whole->Slice(0, 2), whole->Slice(2, 2)}), nullptr);
  EXPECT_EQ(join_adjacent(arrow::ArrayVector{whole->Slice(0, 2), whole->Slice(3, 2)}), nullptr);
  EXPECT_EQ(join_adjacent(arrow::ArrayVector{whole->Slice(2, 2), whole->Slice(0, 2)}), nullptr);
  EXPECT_EQ(join_adjacent(arrow::ArrayVector{whole, numbers({6})}), nullptr);
  const auto bits = arrow::Buffer::FromString(std::string(1, '\x2f'));
  const auto with_null = std::make_shared<arrow::Int16Array>(6, whole->data()->buffers[1], bits);
  EXPECT_EQ(join_adjacent(arrow::ArrayVector{with_null->Slice(0, 3), with_null->Slice(3)}), nullptr);
  const auto texts = Column(std::vector<std::string>{"a", "b"}).arrow();
  EXPECT_EQ(join_adjacent(arrow::ArrayVector{texts->Slice(0, 1), texts->Slice(1)}), nullptr);
}

TEST(Join, RefusesOtherColumns) {
  const Block one = Batch({std::pair<std::string, Column>("a", Column(numbers({1})))}).arrow();
  const Block other = Batch({std::pair<std::string, Column>("b", Column(numbers({1})))}).arrow();
  EXPECT_THROW(join(std::vector<Block>{one, other}, arrow::default_memory_pool()), DatasetError);
}

TEST(BatchMemory, HasTheRowsOfABatchNextToEachOther) {
  BatchMemory memory(10, 1000, arrow::default_memory_pool());
  EXPECT_EQ(memory.rows_left(13), 7);
  const auto later = memory.place(13, 7, 4);
  const auto earlier = memory.place(10, 3, 4);
  EXPECT_EQ(earlier->mutable_data() + 12, later->mutable_data());
}

TEST(BatchMemory, IsUsedAgainByALaterBatch) {
  BatchMemory memory(10, 1000, arrow::default_memory_pool());
  auto place = memory.place(0, 10, 4);
  const std::uint8_t* const first = place->data();
  const auto other = memory.place(10, 10, 4);
  EXPECT_NE(other->data(), first);
  place.reset();
  EXPECT_EQ(memory.place(20, 10, 4)->data(), first);
}

TEST(BatchMemory, FitsBatchesUpToItsLimitOnly) {
  const BatchMemory memory(10, 1000, arrow::default_memory_pool());
  EXPECT_TRUE(memory.fits(100));
  EXPECT_FALSE(memory.fits(101));
  EXPECT_FALSE(memory.fits(0));
}

class BatchesOfImages : public testing::Test {
 protected:
  static constexpr int kImages = 25;
  static constexpr int kSide = 220;  // so that a piece has eight images

  BatchesOfImages() {
    for (int i = 0; i < kImages; ++i) write(i, png_of(smooth_pixels(kSide, kSide, 3, i), kSide, kSide, 3));
  }
  void write(int number, const std::string& bytes) const {
    std::ofstream(directory_.path() / ("image" + std::to_string(100 + number) + ".png"), std::ios::binary) << bytes;
  }
  Dataset read(const ImageOptions& options = {}) const { return threads(read_images(directory_.path(), options)); }
  // Expects the images from `first` on.
  static void expect_images(const Batch& batch, int first) {
    const auto pixels = batch.values<std::uint8_t>("image");
    constexpr std::size_t kBytes = kSide * kSide * 3;
    for (std::int64_t row = 0; row < batch.num_rows(); ++row) {
      const auto own = pixels.subspan(static_cast<std::size_t>(row) * kBytes, kBytes);
      EXPECT_TRUE(std::ranges::equal(own, smooth_pixels(kSide, kSide, 3, first + static_cast<int>(row)))) << row;
    }
  }

  test_support::TemporaryDirectory directory_;
};

TEST_F(BatchesOfImages, AreDecodedInPlace) {
  int row = 0;
  for (const Batch& batch : read().iter_batches({.batch_size = 12})) {
    expect_images(batch, row);
    const arrow::Buffer* whole = &values_buffer(*batch.arrow()->column(0));
    EXPECT_NE(whole->parent(), nullptr);  // of a copy
    while (whole->parent() != nullptr) whole = whole->parent().get();
    EXPECT_EQ(whole->size(), 12 * kSide * kSide * 3);
    row += static_cast<int>(batch.num_rows());
  }
  EXPECT_EQ(row, kImages);
}

TEST_F(BatchesOfImages, StayAsTheyAreWhileLaterOnesAreMade) {
  std::vector<Batch> batches;
  for (const Batch& batch : read().iter_batches({.batch_size = 2})) batches.push_back(batch);
  for (std::size_t i = 0; i < batches.size(); ++i) expect_images(batches[i], static_cast<int>(2 * i));
}

TEST_F(BatchesOfImages, AreRightAfterAnInterruptionWithinABatch) {
  const Dataset dataset = read();
  Shard shard = dataset.shard({.rank = 0, .world_size = 1});
  for (const Batch& batch : shard.iter_batches({.batch_size = 5})) {
    expect_images(batch, 0);
    break;
  }
  int row = 5;
  for (const Batch& batch : shard.iter_batches({.batch_size = 8})) {
    expect_images(batch, row);
    row += static_cast<int>(batch.num_rows());
  }
  EXPECT_EQ(row, kImages);
}

TEST_F(BatchesOfImages, AreRightWhereDamagedOnesAreLeftOut) {
  write(3, "no image");
  Shard shard = read({.on_error = OnError::skip}).shard({.rank = 0, .world_size = 1});
  std::int64_t rows = 0;
  for (const Batch& batch : shard.iter_batches({.batch_size = 4})) {
    expect_images(batch.slice(0, rows == 0 ? 3 : 4), static_cast<int>(rows == 0 ? 0 : rows + 1));
    rows += batch.num_rows();
  }
  EXPECT_EQ(rows, kImages - 1);
}

}  // namespace
}  // namespace cadre::data
