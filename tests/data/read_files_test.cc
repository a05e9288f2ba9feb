// Images, bytes and lines of text, from folders, patterns and single files.
#include "cadre/data/read.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "small_datasets.h"
#include "support/image_file.h"
#include "support/message_of.h"
#include "support/temporary_directory.h"

namespace cadre::data {
namespace {

namespace fs = std::filesystem;
using test_support::message_of;
using test_support::png_of;
using test_support::smooth_pixels;
using test_support::TemporaryDirectory;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::string png(int height, int width, int channels, int seed = 0) {
  return png_of(smooth_pixels(height, width, channels, seed), height, width, channels);
}

// Returns names in the order of their numbers.
std::string name_of(int number) { return std::to_string(100 + number) + ".png"; }

std::vector<std::string> texts_of(const Dataset& dataset, const std::string& column = "text") {
  std::vector<std::string> all;
  for (const Row& row : dataset.take_all()) all.push_back(row.get<std::string>(column));
  return all;
}

Batch brighten(const Batch& batch) {
  std::vector<std::uint8_t> pixels = batch.to_vector<std::uint8_t>("image");
  for (std::uint8_t& pixel : pixels) pixel = static_cast<std::uint8_t>(std::min(pixel + 10, 255));
  return batch.with("image", {std::move(pixels), batch.row_shape("image")});
}

class ReadFilesTest : public ::testing::Test {
 protected:
  void write(const std::string& name, const std::string& bytes) const {
    fs::create_directories((root() / name).parent_path());
    test_support::write_bytes(root() / name, bytes);
  }
  fs::path root() const { return directory_ / "files"; }

  TemporaryDirectory directory_;
};

using ReadImages = ReadFilesTest;
using ReadBinaryFiles = ReadFilesTest;
using ReadText = ReadFilesTest;

// ---- Images

TEST_F(ReadImages, OfOneSizeAreTensorsOfFixedShapeInTheOrderOfTheFiles) {
  std::vector<std::uint8_t> expected;
  for (int number = 0; number < 70; ++number) {
    write(name_of(number), png(4, 6, 3, number));
    const auto pixels = smooth_pixels(4, 6, 3, number);
    expected.insert(expected.end(), pixels.begin(), pixels.end());
  }
  for (const std::int64_t count : {1, 2, 8}) {
    const Dataset images = threads(read_images(root()), count);
    EXPECT_EQ(images.schema().fields.front().name, "image");
    EXPECT_THAT(images.schema().fields.front().type, HasSubstr("fixed_shape_tensor"));
    EXPECT_EQ(images.count(), 70);
    const Batch batch = images.take_batch(100);
    EXPECT_THAT(batch.row_shape("image"), ElementsAre(4, 6, 3));
    EXPECT_THAT(batch.values<std::uint8_t>("image"), ElementsAreArray(expected));
  }
}

TEST_F(ReadImages, OfDifferentSizesAreReadRowByRow) {
  for (int number = 0; number < 5; ++number) write(name_of(number), png(3 + number, 6, 3, number));
  const Dataset images = threads(read_images(root()));
  int number = 0;
  for (const Batch& batch : images.iter_batches({.batch_size = 2})) {
    for (std::int64_t row = 0; row < batch.num_rows(); ++row, ++number) {
      const Batch one = batch.slice(row, 1);
      EXPECT_THAT(one.row_shape("image"), ElementsAre(3 + number, 6, 3));
      EXPECT_THAT(one.values<std::uint8_t>("image"), ElementsAreArray(smooth_pixels(3 + number, 6, 3, number)));
    }
  }
  EXPECT_EQ(number, 5);
  EXPECT_THAT(message_of<InvalidArgument>([&] { images.take_batch(5).row_shape("image"); }),
              HasSubstr("rows of different shapes"));
  const Dataset copy = read_parquet(images.write_parquet(directory_ / "copy").front().string());
  EXPECT_THAT(copy.skip(2).take_batch(1).row_shape("image"), ElementsAre(5, 6, 3));
}

TEST_F(ReadImages, AreResizedAndConverted) {
  write("a.png", png(5, 9, 1));
  write("b.jpg", test_support::jpeg_of(smooth_pixels(40, 30, 3), 40, 30, 3));
  write("c.PNG", png(7, 7, 4));
  const Dataset images = threads(read_images(root(), {.size = {8, 6}, .mode = ImageMode::rgb}));
  EXPECT_EQ(images.count(), 3);
  EXPECT_THAT(images.take_batch(3).row_shape("image"), ElementsAre(8, 6, 3));
  EXPECT_THAT(threads(read_images(root(), {.size = {8, 6}, .mode = ImageMode::grey})).take_batch(3).row_shape("image"),
              ElementsAre(8, 6));
}

TEST_F(ReadImages, HaveColumnsOfPathsAndFolders) {
  write("cat/1.png", png(2, 2, 1));
  write("dog/2.png", png(2, 2, 1));
  const Dataset images =
      threads(read_images(root(), {.include_paths = true, .partitioning = Partitioning::dir({"label"})}));
  EXPECT_THAT(images.columns(), ElementsAre("image", "label", "path"));
  EXPECT_THAT(texts_of(images, "label"), ElementsAre("cat", "dog"));
  EXPECT_THAT(texts_of(images.select_columns({"path"}), "path"),
              ElementsAre((root() / "cat/1.png").string(), (root() / "dog/2.png").string()));
  EXPECT_THAT(message_of<InvalidArgument>([&] {
                threads(read_images(root(), {.partitioning = Partitioning::dir({"year", "label"})})).count();
              }),
              HasSubstr("1.png is in 1 folders below the path that is read, and the partitioning names 2"));
}

TEST_F(ReadImages, AreNotReadForOtherColumns) {
  write("1.png", png(2, 2, 1));
  write("2.png", "no image");
  const Dataset images = threads(read_images(root(), {.include_paths = true}));
  EXPECT_EQ(images.count(), 2);
  EXPECT_THAT(images.select_columns({"path"}).take_all(), SizeIs(2));
  EXPECT_THAT(message_of<InvalidArgument>([&] { images.select_columns({"pixels"}).take_all(); }),
              HasSubstr("no column \"pixels\"; its columns are: image, path"));
}

TEST_F(ReadImages, ThatAreDamagedAreNamedWithTheirRow) {
  for (int number = 0; number < 9; ++number) write(name_of(number), png(4, 6, 3, number));
  write(name_of(6), png(4, 6, 3).substr(0, 90));
  EXPECT_THAT(
      message_of<StorageError>([&] { threads(read_images(root())).take_all(); }),
      HasSubstr("106.png, row 6: it is a PNG image that ends early: write it again, or leave it out; the option "
                "on_error can leave out what is damaged"));
  EXPECT_THAT(threads(read_images(root())).limit(6).take_all(), SizeIs(6));
}

TEST_F(ReadImages, ThatAreDamagedAreSkippedAndCounted) {
  for (int number = 0; number < 90; ++number)
    write(name_of(number), number % 10 == 3 ? "no image" : png(4, 6, 3, number));
  const Dataset images = threads(read_images(root(), {.on_error = OnError::skip, .include_paths = true}), 4);
  ::testing::internal::CaptureStderr();
  EXPECT_THAT(images.take_all(), SizeIs(81));
  const std::string report = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(report,
              HasSubstr("cadre: read_images has left out 9 files or rows that cannot be read; one: cannot read "));
  EXPECT_EQ(images.stats()->operators.front().skipped, 9);
  EXPECT_THAT(to_string(*images.stats()), HasSubstr("9 files or rows that cannot be read were left out"));
  EXPECT_EQ(images.count(), 81);
  EXPECT_EQ(std::ssize(images.select_columns({"path"}).take_all()), 81);
  std::map<std::string, int> paths;
  for (const std::int64_t rank : {0, 1, 2}) {
    Shard shard = images.shard({.rank = rank, .world_size = 3, .shuffle = true});
    for (const Batch& batch : shard.iter_batches({.batch_size = 7})) {
      for (const auto path : batch.texts("path")) ++paths[std::string(path)];
    }
  }
  EXPECT_THAT(paths, SizeIs(81));
  for (const Dataset& part : images.split(3)) EXPECT_THAT(part.take_all(), SizeIs(27));
}

TEST_F(ReadImages, ThatDoNotFitTheOthersAreNoDamage) {
  for (int number = 0; number < 130; ++number) write(name_of(number), png(4, number == 1 ? 7 : 6, 3));
  const ImageOptions options{.on_error = OnError::skip};
  EXPECT_THAT(message_of<InvalidArgument>([&] { threads(read_images(root(), options)).take_all(); }),
              HasSubstr("101.png, row 1: the image has the shape 4 x 7 x 3, and others 4 x 6 x 3: give a `size`"));
  EXPECT_EQ(threads(read_images(root(), {.equal_shapes = false})).take_batch(1).row_shape("image").size(), 3U);
  EXPECT_THAT(threads(read_images(root(), {.equal_shapes = false})).take_all(), SizeIs(130));
  write("100.png", png(4, 6, 1));
  EXPECT_THAT(message_of<InvalidArgument>([&] { threads(read_images(root(), {.equal_shapes = false})).take_all(); }),
              HasSubstr("give a `mode`"));
}

TEST_F(ReadImages, OfOtherFormatsAreNotLeftOutInSilence) {
  write("1.png", png(2, 2, 1));
  write("2.gif", "GIF89a");
  write("notes.txt", "not an image");
  EXPECT_EQ(threads(read_images(root())).count(), 2);
  EXPECT_THAT(message_of<StorageError>([&] { threads(read_images(root())).take_all(); }),
              HasSubstr("2.gif, row 1: it is neither a JPEG nor a PNG image"));
  EXPECT_THAT(threads(read_images(root(), {.file_extensions = {"png"}})).take_all(), SizeIs(1));
}

TEST_F(ReadImages, OfAnEmptyFolderAreNotFound) {
  fs::create_directories(root());
  EXPECT_THAT(message_of<NotFound>([&] { read_images(root()); }), HasSubstr("has no files that end with .png, .jpg"));
  EXPECT_THAT(message_of<NotFound>([&] { read_images(root() / "none"); }), HasSubstr("there is no file or folder"));
  write("1.png", png(2, 2, 1));
  EXPECT_THAT(message_of<NotFound>([&] { read_images(std::vector<std::string>{root(), root() / "none"}); }),
              HasSubstr("none"));
  EXPECT_EQ(
      threads(read_images(std::vector<std::string>{root(), root() / "none"}, {.ignore_missing_paths = true})).count(),
      1);
  EXPECT_THROW(read_images(std::vector<std::string>{root() / "none"}, {.ignore_missing_paths = true}), NotFound);
}

TEST_F(ReadImages, HaveOptionsThatAreChecked) {
  write("1.png", png(2, 2, 1));
  EXPECT_THROW(read_images(root(), {.size = {0, 5}}), InvalidArgument);
  EXPECT_THROW(read_images(std::vector<std::string>()), InvalidArgument);
  EXPECT_THROW(read_images(root(), {.partitioning = {.field_names = {"label"}}}), InvalidArgument);
  EXPECT_THROW(read_images(root(), {.partitioning = Partitioning::dir({})}), InvalidArgument);
}

TEST_F(ReadImages, TravelAsAValue) {
  write("cat/1.png", png(4, 6, 3));
  write("cat/2.png", png(5, 6, 3));
  const Dataset images = threads(read_images(root(), {.size = {2, 3},
                                                      .mode = ImageMode::rgb,
                                                      .on_error = OnError::skip,
                                                      .include_paths = true,
                                                      .partitioning = Partitioning::dir({"label"})}));
  const Dataset copy{Value(images)};
  EXPECT_EQ(Value(copy), Value(images));
  EXPECT_EQ(copy.take_batch(), images.take_batch());
}

TEST_F(ReadImages, GoThroughFunctionsInProcesses) {
  for (int number = 0; number < 40; ++number) write(name_of(number), png(4, 6, 3, number));
  const Dataset images = read_images(root())
                             .map_batches(fn<brighten>, {.batch_size = 7, .concurrency = 2})
                             .with_options({.function_place = FunctionPlace::processes});
  const Batch batch = images.take_batch(40);
  ASSERT_EQ(batch.num_rows(), 40);
  const std::vector<std::uint8_t> first = smooth_pixels(4, 6, 3, 0);
  EXPECT_EQ(batch.values<std::uint8_t>("image")[5], first[5] + 10);
}

TEST_F(ReadImages, AreReadWithinTheMemoryLimit) {
  const std::string large = png(512, 512, 3);
  for (int number = 0; number < 24; ++number) write(name_of(number), large);
  const Dataset images = read_images(root()).with_options({.memory_limit_bytes = 4 << 20, .num_threads = 4});
  std::int64_t rows = 0;
  for (const Batch& batch : images.iter_batches({.batch_size = 1})) rows += batch.num_rows();
  EXPECT_EQ(rows, 24);
}

// ---- Bytes

TEST_F(ReadBinaryFiles, AreRowsWithTheirBytes) {
  write("a.bin", std::string("\0\xff\n", 3));
  write("b.gz", "not decompressed");
  write("empty", "");
  const Dataset files = threads(read_binary_files(root(), {.include_paths = true}));
  EXPECT_THAT(files.columns(), ElementsAre("bytes", "path"));
  EXPECT_EQ(files.count(), 3);
  const Batch batch = files.take_batch();
  EXPECT_THAT(batch.texts("bytes"), ElementsAre(std::string("\0\xff\n", 3), "not decompressed", ""));
  EXPECT_THAT(threads(read_binary_files(root(), {.file_extensions = {"gz"}})).take_all(), SizeIs(1));
  EXPECT_THAT(threads(read_binary_files((root() / "?.*").string())).take_all(), SizeIs(2));
}

// So that a file of almost 2 GiB fits into its block, which has no more.
TEST_F(ReadBinaryFiles, ALargeOneSharesNoBlockWithSmallOnes) {
  write("a", "small");
  write("b", "small");
  write("c", std::string(std::size_t{1} << 20, 'x'));
  write("d", "small");
  std::vector<std::int64_t> rows;
  for (const Batch& batch : threads(read_binary_files(root())).iter_batches({.batch_size = {}}))
    rows.push_back(batch.num_rows());
  EXPECT_THAT(rows, ElementsAre(2, 1, 1));
}

// ---- Text

TEST_F(ReadText, HasARowForEachLine) {
  write("1.txt", "one\ntwo\r\n\n  \nthree\rfour");
  write("2.txt", "");
  write("3.txt", "five\n");
  EXPECT_THAT(texts_of(threads(read_text(root()))), ElementsAre("one", "two", "three", "four", "five"));
  EXPECT_THAT(texts_of(threads(read_text(root(), {.drop_empty_lines = false}))),
              ElementsAre("one", "two", "", "  ", "three", "four", "five"));
  EXPECT_EQ(threads(read_text(root())).count(), 5);
  EXPECT_THAT(texts_of(threads(read_text(root())).skip(1).limit(2)), ElementsAre("two", "three"));
  EXPECT_THAT(threads(read_text(root())).select_columns({}).take_all(), SizeIs(5));
}

TEST_F(ReadText, EndsLinesAlikeWhereverTheyLieInTheFile) {
  std::string text;
  std::vector<std::string> expected;
  for (int number = 0; number < 30'000; ++number) {
    expected.push_back(std::string(static_cast<std::size_t>(number % 61 + 1), static_cast<char>('a' + number % 26)));
    text += expected.back() + (number % 3 == 0 ? "\r\n" : number % 3 == 1 ? "\n" : "\r");
  }
  write("1.txt", text);
  EXPECT_EQ(texts_of(threads(read_text(root()))), expected);
  for (const std::int64_t rank : {0, 1}) {
    std::vector<std::string> half;
    Shard shard = threads(read_text(root())).shard({.rank = rank, .world_size = 2});
    for (const Batch& batch : shard.iter_batches()) {
      for (const std::string_view line : batch.texts("text")) half.emplace_back(line);
    }
    EXPECT_TRUE(std::ranges::equal(half, std::span(expected).subspan(rank == 0 ? 0 : 15'000, 15'000)));
  }
}

TEST_F(ReadText, NamesTheLineThatIsNotUtf8) {
  write("1.txt", "one\ntwo\n\xff\xfe\n");
  EXPECT_THAT(message_of<StorageError>([&] { threads(read_text(root())).take_all(); }),
              HasSubstr("1.txt, line 3: it is not UTF-8; convert the file, or read it with read_binary_files"));
}

}  // namespace
}  // namespace cadre::data
