// WebDatasets; tests/compat/data_read_test.py compares them with Ray Data.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <utility>

#include "cadre/data/read.h"
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
using test_support::write_bytes;
using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::SizeIs;

std::string octal(std::size_t number, std::size_t width) {
  std::string digits(width - 1, '0');
  for (std::size_t at = width - 1; at-- > 0; number /= 8) digits[at] = static_cast<char>('0' + number % 8);
  return digits;
}

// Returns a member of a tar archive.
std::string member(const std::string& name, const std::string& content, char type = '0') {
  std::string header(512, '\0');
  header.replace(0, std::min<std::size_t>(name.size(), 100), name.substr(0, 100));
  header.replace(100, 7, octal(0644, 8));
  header.replace(124, 11, octal(content.size(), 12));
  header.replace(148, 8, 8, ' ');
  header[156] = type;
  header.replace(257, 8,
                 std::string("ustar\0"
                             "00",
                             8));
  std::size_t sum = 0;
  for (const char byte : header) sum += static_cast<unsigned char>(byte);
  header.replace(148, 7, octal(sum, 7) + std::string(1, '\0'));
  return header + content + std::string((512 - content.size() % 512) % 512, '\0');
}
// Returns a member with another size in its header, in the form of the 12 bytes there.
std::string with_size(std::string bytes, const std::string& size) {
  bytes.replace(124, 12, size);
  bytes.replace(148, 8, 8, ' ');
  std::size_t sum = 0;
  for (std::size_t at = 0; at < 512; ++at) sum += static_cast<unsigned char>(bytes[at]);
  return bytes.replace(148, 7, octal(sum, 7) + std::string(1, '\0'));
}
const std::string kEnd(1024, '\0');

std::string png(int height, int width, int seed) {
  return png_of(smooth_pixels(height, width, 3, seed), height, width, 3);
}

class ReadWebDataset : public ::testing::Test {
 protected:
  ReadWebDataset() { fs::create_directories(root()); }
  void write(const std::string& name, const std::string& bytes) const { write_bytes(root() / name, bytes); }
  fs::path root() const { return directory_ / "tars"; }
  Dataset read(const WebDatasetOptions& options = {}) const {
    return threads(read_webdataset(root().string(), options));
  }

  TemporaryDirectory directory_;
};

TEST_F(ReadWebDataset, DecodesSamplesByTheirSuffixes) {
  write("1.tar", member("./", "", '5') + member("a/1.png", png(4, 6, 1)) + member("a/1.cls", "7\n") +
                     member("a/1.json", "{\"x\": [1, 2],\n \"y\": null}") + member("a/1.left.txt", "zwölf") +
                     member("a/2.png", png(5, 6, 2)) + member("a/2.raw", std::string("\0\1", 2)) +
                     member("a/2.cls", "-3") + kEnd);
  write("2.tar", member("b.cls", "0") + member("b.json", "{\"y\": null}") + kEnd);
  const Dataset rows = read();
  EXPECT_THAT(rows.columns(), ElementsAre("__key__", "png", "cls", "json", "left.txt", "raw", "__url__"));
  EXPECT_EQ(rows.count(), 3);
  const Batch batch = rows.take_batch();
  EXPECT_THAT(batch.texts("__key__"), ElementsAre("a/1", "a/2", "b"));
  EXPECT_THAT(batch.values<std::int64_t>("cls"), ElementsAre(7, -3, 0));
  EXPECT_THAT(batch.slice(1, 1).row_shape("png"), ElementsAre(5, 6, 3));
  EXPECT_THAT(batch.slice(1, 1).values<std::uint8_t>("png"), ElementsAreArray(smooth_pixels(5, 6, 3, 2)));
  EXPECT_TRUE(batch.is_null("png", 2));
  EXPECT_EQ(batch.value("json", 0), (Value(Dict{{"x", List{1, 2}}, {"y", Value()}})));
  EXPECT_TRUE(batch.is_null("json", 1));
  EXPECT_EQ(batch.value("left.txt", 0), Value("zwölf"));
  EXPECT_EQ(batch.texts("__url__")[2], (root() / "2.tar").string());
  EXPECT_THAT(rows.select_columns({"cls"}).skip(1).take_all(), ElementsAre(Row{{"cls", -3}}, Row{{"cls", 0}}));
}

TEST_F(ReadWebDataset, HasTensorsOfFixedShapeWithASizeAndAMode) {
  write("1.tar", member("1.png", png(4, 6, 1)) + member("2.png", png(5, 7, 2)) + member("3.txt", "none") + kEnd);
  const Batch batch = read({.size = {2, 3}, .mode = ImageMode::grey}).take_batch();
  EXPECT_THAT(batch.type("png"), HasSubstr("fixed_shape_tensor"));
  EXPECT_THAT(batch.slice(0, 2).row_shape("png"), ElementsAre(2, 3));
  EXPECT_TRUE(batch.is_null("png", 2));
}

TEST_F(ReadWebDataset, ReadsOnlyTheWantedSuffixes) {
  write("1.tar",
        member("1.png", "damaged") + member("1.a.txt", "x") + member("1.b.txt", "y") + member("1.cls", "1") + kEnd);
  EXPECT_THAT(read({.suffixes = {"cls", "*.txt"}}).columns(),
              ElementsAre("__key__", "a.txt", "b.txt", "cls", "__url__"));
  EXPECT_THAT(read({.suffixes = {".cls", "json"}}).take_all(), SizeIs(1));
  EXPECT_THAT(read({.decode = false}).take_batch().texts("png"), ElementsAre("damaged"));
  EXPECT_EQ(read({.decode = false}).schema().fields[1].type, "binary");
}

TEST_F(ReadWebDataset, ReadsLongNames) {
  const std::string folder(200, 'f');
  const std::string path = "path=" + folder + "/pax.cls\n";
  const std::string attributes = std::to_string(path.size() + 4) + " " + path;
  write("1.tar", member("././@LongLink", folder + "/gnu.cls", 'L') + member("short.cls", "1") +
                     member("PaxHeader", attributes, 'x') + member("short.cls", "2") + kEnd);
  EXPECT_THAT(read().take_batch().texts("__key__"), ElementsAre(folder + "/gnu", folder + "/pax"));
}

TEST_F(ReadWebDataset, RefusesAnArchiveThatEndsEarlyAnywhere) {
  const std::string whole = member("1.cls", "1") + member("2.cls", "2") + kEnd;
  for (std::size_t size = 0; size <= 2048; size += size % 512 < 8 || size % 512 > 504 ? 1 : 37) {
    write("1.tar", whole.substr(0, size));
    EXPECT_THAT(message_of<StorageError>([&] { read().take_all(); }), HasSubstr("the archive ends early")) << size;
    const Dataset rest = read({.on_error = OnError::skip});
    EXPECT_EQ(std::ssize(rest.take_all()), size < 1536 ? 0 : 1) << size;
    EXPECT_EQ(rest.stats()->operators.front().skipped, 1);
  }
  write("1.tar", whole);
  EXPECT_THAT(read().take_all(), SizeIs(2));
}

TEST_F(ReadWebDataset, NamesTheFileInWhichAnArchiveEnds) {
  const std::string whole = member("1.cls", "1") + member("folder/2.txt", std::string(600, 'x')) + kEnd;
  write("1.tar", whole.substr(0, 1024 + 512 + 300));
  EXPECT_THAT(message_of<StorageError>([&] { read().take_all(); }),
              HasSubstr("1.tar, row 1: the archive ends early, in its file \"folder/2.txt\": write it again"));
  write("1.tar", whole.substr(0, 1024 + 100));
  EXPECT_THAT(message_of<StorageError>([&] { read().take_all(); }),
              HasSubstr("the archive ends early, after its file \"1.cls\": write it again"));
}

TEST_F(ReadWebDataset, TakesNoMemoryForASizeThatIsWrong) {
  write("1.tar", with_size(member("1.txt", ""), std::string("15000000000\0", 12)) + kEnd);  // 1.75 GB
  EXPECT_THAT(message_of<StorageError>([&] { read().take_all(); }), HasSubstr("the archive ends early"));
  EXPECT_LT(read({.on_error = OnError::skip}).take_all().size(), 1U);
}

TEST_F(ReadWebDataset, SkipsAFileOfAnySizeToTheEndOfTheArchive) {
  const std::string most = std::string("\x80\0\0\0\x7f", 5) + std::string(7, '\xff');  // 2^63 - 1, in GNU's form
  write("1.tar", member("1.cls", "1") + with_size(member("2.txt", ""), most) + kEnd);
  EXPECT_THAT(message_of<StorageError>([&] { read({.suffixes = {"cls"}}).take_all(); }),
              HasSubstr("the archive ends early, after its file \"2.txt\""));
  write("1.tar", member("1.mp4", std::string(3 << 20, 'x')) + member("1.cls", "1") + member("2.cls", "2") + kEnd);
  EXPECT_THAT(read({.suffixes = {"cls"}}).select_columns({"cls"}).take_all(),
              ElementsAre(Row{{"cls", 1}}, Row{{"cls", 2}}));
}

TEST_F(ReadWebDataset, ReadsCompressedArchives) {
  write("1.tar", member("1.cls", "1") + member("2.cls", "2") + kEnd);
  const std::string source = (root() / "1.tar").string();
  ASSERT_EQ(std::system(("gzip -c " + source + " > " + (root() / "2.tar.gz").string()).c_str()), 0);
  EXPECT_THAT(read().select_columns({"cls"}).take_all(),
              ElementsAre(Row{{"cls", 1}}, Row{{"cls", 2}}, Row{{"cls", 1}}, Row{{"cls", 2}}));
  std::filesystem::resize_file(root() / "2.tar.gz", std::filesystem::file_size(root() / "2.tar.gz") / 2);
  EXPECT_THAT(message_of<StorageError>([&] { read().take_all(); }),
              AllOf(HasSubstr("2.tar.gz"), HasSubstr("the file is damaged or ends early; write it again")));
}

TEST_F(ReadWebDataset, NamesTheSampleThatIsDamaged) {
  write("1.tar", member("1.png", png(4, 6, 1)) + member("1.cls", "1") + member("2.png", png(4, 6, 1).substr(0, 80)) +
                     member("2.cls", "2") + member("3.png", png(4, 6, 1)) + member("3.cls", "three") +
                     member("4.png", png(4, 6, 1)) + member("4.cls", "4") + kEnd);
  EXPECT_THAT(message_of<StorageError>([&] { read().take_all(); }),
              HasSubstr("1.tar, row 1: the sample \"2\", file \".png\": it is a PNG image that ends early"));
  EXPECT_THAT(message_of<StorageError>([&] { read().take_all(); }),
              HasSubstr("; the option on_error can leave out what is damaged"));
  EXPECT_THAT(message_of<StorageError>([&] { read({.suffixes = {"cls"}}).take_all(); }),
              HasSubstr("1.tar, row 2: the sample \"3\", file \".cls\": it is no integer"));
  const Dataset rows = read({.on_error = OnError::skip});
  EXPECT_THAT(rows.take_batch().texts("__key__"), ElementsAre("1", "4"));
  EXPECT_EQ(rows.stats()->operators.front().skipped, 2);
  EXPECT_EQ(rows.count(), 2);
  EXPECT_THAT(rows.skip(1).take_batch().texts("__key__"), ElementsAre("4"));
}

TEST_F(ReadWebDataset, RefusesSamplesInPieces) {
  write("1.tar", member("1.a", "") + member("2.a", "") + member("1.b", "") + kEnd);
  EXPECT_THAT(message_of<StorageError>([&] { read().take_all(); }),
              HasSubstr("the files of the sample \"1\" are not next to each other in the archive"));
  write("1.tar", member("1.a", "") + member("1.a", "") + kEnd);
  EXPECT_THAT(message_of<StorageError>([&] { read().take_all(); }), HasSubstr("the sample \"1\" has two files \".a\""));
}

TEST_F(ReadWebDataset, RefusesOtherFiles) {
  write("1.tar", std::string(2000, 'x'));
  EXPECT_THAT(message_of<StorageError>([&] { read().take_all(); }),
              HasSubstr("the archive is damaged, or no tar archive"));
  write("1.tar", member("1.a", "", 'S') + kEnd);
  EXPECT_THAT(message_of<StorageError>([&] { read().take_all(); }), HasSubstr("a file with holes"));
}

TEST_F(ReadWebDataset, SaysWhatToDoWithAFileThatDoesNotFit) {
  const std::string large(1 << 20, 'x');
  write("1.tar", member("1.txt", large) + member("2.cls", "1") + kEnd);
  EXPECT_THAT(
      message_of<InvalidArgument>([&] { read().take_all(); }),
      HasSubstr("row 1: the sample \"2\" has a file \".cls\", which those at the beginning of the first archive do "
                "not have: name the wanted suffixes"));
  EXPECT_THAT(read({.suffixes = {"txt", "cls"}}).select_columns({"cls"}).take_all(),
              ElementsAre(Row{{"cls", Value()}}, Row{{"cls", 1}}));
  write("1.tar", member("1.txt", large) + member("1.json", "{\"a\": 1}") + member("2.json", "{\"a\": \"b\"}") + kEnd);
  EXPECT_THAT(message_of<StorageError>([&] { read().take_all(); }), HasSubstr("`decode` off"));
}

TEST_F(ReadWebDataset, TravelsAsAValue) {
  write("1.tar", member("1.png", png(4, 6, 1)) + member("1.cls", "1") + kEnd);
  const Dataset rows = read({.suffixes = {"png"}, .size = {2, 2}});
  EXPECT_EQ(Dataset(Value(rows)).take_batch(), rows.take_batch());
}

}  // namespace
}  // namespace cadre::data
