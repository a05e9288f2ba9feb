// TensorFlow's files of records; tests/compat/data_read_test.py compares random messages with Protocol Buffers.
#include "data/tf_records.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cadre/data/read.h"
#include "file_bytes.h"
#include "small_datasets.h"
#include "support/message_of.h"
#include "support/temporary_directory.h"

namespace cadre::data {
namespace {

namespace fs = std::filesystem;
using test_support::message_of;
using test_support::TemporaryDirectory;
using test_support::write_bytes;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

std::string record_of(const std::string& content) {
  const auto masked = [](std::string_view bytes) {
    const std::uint32_t crc = crc32c(bytes);
    return little_endian_bytes((crc >> 15 | crc << 17) + 0xa282ead8, 4);
  };
  const std::string length = little_endian_bytes(content.size(), 8);
  return length + masked(length) + content + masked(content);
}

// Returns a field of Protocol Buffers that has bytes.
std::string field(int number, const std::string& content) {
  return static_cast<char>(number << 3 | 2) + std::string(1, static_cast<char>(content.size())) + content;
}
// Returns an example of features: names, and the kind and content of their lists.
std::string example(const std::vector<std::pair<std::string, std::string>>& features) {
  std::string all;
  for (const auto& [name, list] : features) all += field(1, field(1, name) + field(2, list));
  return record_of(field(1, all));
}
std::string integers(const std::string& varints) { return field(3, field(1, varints)); }
std::string texts(const std::vector<std::string>& all) {
  std::string list;
  for (const std::string& text : all) list += field(1, text);
  return field(1, list);
}

class ReadTfRecords : public ::testing::Test {
 protected:
  ReadTfRecords() { fs::create_directories(root()); }
  void write(const std::string& name, const std::string& bytes) const { write_bytes(root() / name, bytes); }
  fs::path root() const { return directory_ / "records"; }
  Dataset read(const TfRecordsOptions& options = {}) const { return threads(read_tfrecords(root().string(), options)); }

  TemporaryDirectory directory_;
};

TEST(Crc32c, IsTheChecksumOfTheStandard) {
  EXPECT_EQ(crc32c("123456789"), 0xe3069283U);
  EXPECT_EQ(crc32c(""), 0U);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aaU);  // RFC 3720
}

TEST_F(ReadTfRecords, HasAColumnForEachFeature) {
  write("1.tfrecords", example({{"id", integers("\x05")}, {"name", texts({"a"})}, {"list", integers("\x01\x02")}}) +
                           example({{"list", integers("\x03")}, {"id", integers("\x80\x01")}}));
  write("2.tfrecords",
        example({{"id", integers("\x07")}, {"weight", field(2, field(1, std::string("\0\0\xc0\x3f", 4)))}}));
  EXPECT_THAT(read().columns(), ElementsAre("id", "name", "list", "weight"));
  EXPECT_EQ(read().count(), 3);
  EXPECT_THAT(read().take_all(),
              ElementsAre(Row{{"id", 5}, {"name", "a"}, {"list", List{1, 2}}, {"weight", Value()}},
                          Row{{"id", 128}, {"name", Value()}, {"list", List{3}}, {"weight", Value()}},
                          Row{{"id", 7}, {"name", Value()}, {"list", Value()}, {"weight", 1.5}}));
  EXPECT_THAT(read().select_columns({"id"}).skip(2).take_all(), ElementsAre(Row{{"id", 7}}));
}

TEST_F(ReadTfRecords, TakesTypesFromTheOptions) {
  write("1.tfrecords", example({{"id", integers("\x05")}, {"name", texts({"ü"})}}));
  const Dataset rows = read({.types = {{"id", "list<item: int64>"}, {"name", "string"}, {"other", "float"}}});
  EXPECT_EQ(to_string(rows.schema()),
            to_string(Schema{{{"id", "list<item: int64>"}, {"name", "string"}, {"other", "float"}}}));
  EXPECT_THAT(rows.take_all(), ElementsAre(Row{{"id", List{5}}, {"name", "ü"}, {"other", Value()}}));
  EXPECT_THAT(message_of<InvalidArgument>([&] { read({.types = {{"id", "double"}}}).take_all(); }),
              HasSubstr("no values of type \"double\""));
}

TEST_F(ReadTfRecords, SaysWhatToDoWithAFeatureThatDoesNotFit) {
  std::string many;
  for (int i = 0; i < 100'000; ++i) many += example({{"id", integers("\x05")}});
  write("1.tfrecords", many + example({{"id", integers("\x05\x06")}}));
  EXPECT_THAT(
      message_of<InvalidArgument>([&] { read().take_all(); }),
      HasSubstr("1.tfrecords, row 100000: the feature \"id\" has 2 values, and at the beginnings of the files one; "
                "say with `types` what it is: {\"id\", \"list<item: int64>\"}"));
  write("1.tfrecords", many + example({{"new", texts({"a"})}}));
  EXPECT_THAT(message_of<InvalidArgument>([&] { read().take_all(); }), HasSubstr("it has a feature \"new\""));
  write("1.tfrecords", example({{"id", integers("\x05")}}));
  write("2.tfrecords", example({{"id", texts({"a"})}}));
  EXPECT_THAT(message_of<StorageError>([&] { read().take_all(); }),
              HasSubstr("2.tfrecords: the feature \"id\" has bytes, and elsewhere integers"));
}

TEST_F(ReadTfRecords, RefusesAFileThatIsCutAnywhere) {
  const std::string first = example({{"id", integers("\x05")}});
  const std::string both = first + example({{"id", integers("\x06")}});
  for (std::size_t size = 1; size < both.size(); ++size) {
    if (size == first.size()) continue;
    write("1.tfrecords", both.substr(0, size));
    EXPECT_THAT(message_of<StorageError>([&] { read().take_all(); }),
                HasSubstr(size < first.size() ? "row 0: the file ends within a record"
                                              : "row 1: the file ends within a record"))
        << size;
    const Dataset rest = read({.on_error = OnError::skip});
    EXPECT_EQ(std::ssize(rest.take_all()), size < first.size() ? 0 : 1);
    EXPECT_EQ(rest.stats()->operators.front().skipped, 1);
  }
}

TEST_F(ReadTfRecords, NoticesEveryFlippedBit) {
  const std::string whole = example({{"id", integers("\x05")}}) + example({{"id", integers("\x06")}});
  for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
    std::string bytes = whole;
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ 1 << bit % 8);
    write("1.tfrecords", bytes);
    EXPECT_THROW(read().take_all(), StorageError) << bit;
  }
}

TEST_F(ReadTfRecords, LeavesOutADamagedRecordAndContinues) {
  std::string damaged = example({{"id", integers("\x06")}});
  damaged[14] = static_cast<char>(damaged[14] + 1);
  write("1.tfrecords",
        example({{"id", integers("\x05")}}) + damaged + record_of("no example") + example({{"id", integers("\x07")}}));
  const Dataset rows = read({.on_error = OnError::skip});
  EXPECT_THAT(rows.take_all(), ElementsAre(Row{{"id", 5}}, Row{{"id", 7}}));
  EXPECT_EQ(rows.stats()->operators.front().skipped, 2);
  EXPECT_EQ(rows.count(), 2);
  EXPECT_THAT(message_of<StorageError>([&] { read().take_all(); }),
              HasSubstr("row 1: the checksum of the record is wrong: it is damaged"));
}

TEST_F(ReadTfRecords, MayBeEmpty) {
  write("1.tfrecords", "");
  EXPECT_THAT(read().take_all(), SizeIs(0));
  EXPECT_EQ(read().count(), 0);
}

TEST_F(ReadTfRecords, TravelsAsAValue) {
  write("1.tfrecords", example({{"id", integers("\x05")}}));
  EXPECT_EQ(Dataset(Value(read({.types = {{"id", "int64"}}}))).take_all(), read().take_all());
}

}  // namespace
}  // namespace cadre::data
