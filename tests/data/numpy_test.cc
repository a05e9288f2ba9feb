// Files of numpy's; tests/compat/data_read_test.py compares all types with numpy.
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
using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class ReadNumpy : public ::testing::Test {
 protected:
  ReadNumpy() { fs::create_directories(root()); }
  void write(const std::string& name, const std::string& bytes) const { write_bytes(root() / name, bytes); }
  fs::path root() const { return directory_ / "arrays"; }
  Dataset read(const NumpyOptions& options = {}) const { return threads(read_numpy(root().string(), options)); }

  TemporaryDirectory directory_;
};

TEST_F(ReadNumpy, HasARowForEachIndexOfTheFirstDimension) {
  write("1.npy", npy_of("(2, 3)", 6));
  write("2.npy", npy_of("(1, 3)", 3, 6));
  EXPECT_EQ(read().count(), 3);
  const Batch batch = read().take_batch();
  EXPECT_THAT(batch.row_shape("data"), ElementsAre(3));
  EXPECT_THAT(batch.values<std::uint8_t>("data"), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8));
  EXPECT_THAT(read().skip(1).limit(1).take_batch().values<std::uint8_t>("data"), ElementsAre(3, 4, 5));
}

TEST_F(ReadNumpy, ReadsFortransOrderAndSingleValues) {
  write("1.npy",
        npy("{'descr': '<i2', 'fortran_order': True, 'shape': (2, 3)}", std::string("\1\0\2\0\3\0\4\0\5\0\6\0", 12)));
  EXPECT_THAT(read().take_batch().values<std::int16_t>("data"), ElementsAre(1, 3, 5, 2, 4, 6));
  write("1.npy", npy("{'shape': (), 'fortran_order': False, 'descr': '>i2'}", std::string("\1\2", 2)));
  EXPECT_THAT(read().take_batch().values<std::int16_t>("data"), ElementsAre(0x102));
}

TEST_F(ReadNumpy, HasNullsForTimesThatAreNone) {
  const std::string not_a_time = little_endian_bytes(std::uint64_t{1} << 63, 8);
  write("1.npy", npy("{'descr': '<M8[s]', 'fortran_order': False, 'shape': (3,)}",
                     little_endian_bytes(0, 8) + not_a_time + little_endian_bytes(1, 8)));
  const Batch times = read().take_batch();
  EXPECT_EQ(times.null_count("data"), 1);
  EXPECT_TRUE(times.is_null("data", 1));
  const std::string big_endian(not_a_time.rbegin(), not_a_time.rend());
  write("1.npy", npy("{'descr': '>m8[ms]', 'fortran_order': False, 'shape': (2,)}", big_endian + std::string(8, '\0')));
  EXPECT_THAT(read().take_all(), ElementsAre(Row{{"data", Value()}}, Row{{"data", 0}}));
}

TEST_F(ReadNumpy, OfManyRowsIsReadInParts) {
  std::string values(3'000'000, 0);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<char>(i % 251);
  write("1.npy", npy("{'descr': '|u1', 'fortran_order': False, 'shape': (1000000, 3)}", values));
  std::int64_t rows = 0;
  for (const Batch& batch : read().iter_batches({.batch_size = {}})) {
    EXPECT_LT(batch.num_rows(), 1'000'000);
    EXPECT_EQ(batch.values<std::uint8_t>("data")[0], rows * 3 % 251);
    rows += batch.num_rows();
  }
  EXPECT_EQ(rows, 1'000'000);
}

TEST_F(ReadNumpy, RefusesAFileThatIsCutAnywhere) {
  const std::string whole = npy_of("(4, 3)", 12);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    write("1.npy", whole.substr(0, size));
    EXPECT_THAT(message_of<StorageError>([&] { read().take_all(); }),
                AnyOf(HasSubstr("ends early"), HasSubstr("does not begin as one")))
        << size;
  }
}

TEST_F(ReadNumpy, RefusesHeadersThatCannotBe) {
  const auto refusal = [&](const std::string& header) {
    write("1.npy", npy(header, std::string(64, 1)));
    return message_of<StorageError>([&] { read().take_all(); });
  };
  EXPECT_THAT(refusal("{'descr': '|u1', 'fortran_order': False, 'shape': (4000000000, 4000000000, 4000000000)}"),
              HasSubstr("1.npy: it is no array of numpy's, or a damaged one: its shape is larger than any memory"));
  EXPECT_THAT(refusal("{'descr': '|u1', 'fortran_order': False, 'shape': (0, 4611686018427387904, 4)}"),
              HasSubstr("larger than any memory"));
  EXPECT_THAT(refusal("{'descr': '<U4611686018427387904', 'fortran_order': False, 'shape': (3,)}"),
              HasSubstr("larger than any memory"));
  EXPECT_THAT(refusal("{'descr': '|u1', 'fortran_order': False, 'shape': (1000000000000,)}"),
              HasSubstr("it ends early"));
  EXPECT_THAT(refusal("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}"),
              HasSubstr("its values are objects of Python, which numpy has pickled: write an array of numbers"));
  EXPECT_THAT(refusal("{'descr': '<c8', 'fortran_order': False, 'shape': (1,)}"), HasSubstr("numpy's type \"<c8\""));
  EXPECT_THAT(refusal("{'descr': [('a', '<i4')], 'fortran_order': False, 'shape': (1,)}"), HasSubstr("structures"));
  EXPECT_THAT(refusal("{'descr': '<U2', 'fortran_order': False, 'shape': (2, 2)}"), HasSubstr("one dimension"));
  EXPECT_THAT(refusal("{'descr': '|u1', 'fortran_order': False, 'shape': (2, 0)}"), HasSubstr("rows have no values"));
  EXPECT_THAT(refusal("{'descr': '|u1', 'fortran_order': Maybe, 'shape': (1,)}"), HasSubstr("order"));
  EXPECT_THAT(refusal("{'descr': '|u1', 'shape': (1,)}"), HasSubstr("lacks an entry"));
  EXPECT_THAT(refusal("{'descr': '|u1', 'fortran_order': False, 'shape': (-1,)}"), HasSubstr("no shape"));
  EXPECT_THAT(refusal("nothing"), HasSubstr("lacks a \"{\""));
}

TEST_F(ReadNumpy, WantsRowsOfOneKind) {
  write("1.npy", npy_of("(2, 3)", 6));
  write("2.npy", npy_of("(3, 2)", 6));
  EXPECT_THAT(message_of<StorageError>([&] { read().take_all(); }), HasSubstr("2.npy has"));
}

TEST_F(ReadNumpy, NamesATypeThatItDoesNotRead) {
  write("1.npy", npy("{'descr': '<c16', 'fortran_order': False, 'shape': (1,)}", std::string(16, 1)));
  EXPECT_THAT(message_of<StorageError>([&] { read().take_all(); }),
              HasSubstr("1.npy: its values are of numpy's type \"<c16\": convert them to truth values, integers"));
}

TEST_F(ReadNumpy, SkipsAndCountsDamagedFiles) {
  write("1.npy", npy_of("(2, 3)", 6).substr(0, 40));
  write("2.npy", npy_of("(2, 3)", 6));
  write("3.npy", "nothing");
  const Dataset rows = read({.on_error = OnError::skip});
  EXPECT_EQ(rows.count(), 2);
  EXPECT_THAT(rows.take_all(), SizeIs(2));
  EXPECT_EQ(rows.stats()->operators.front().skipped, 2);
}

TEST_F(ReadNumpy, TravelsAsAValue) {
  write("1.npy", npy_of("(2, 3)", 6));
  EXPECT_EQ(Dataset(Value(read())).take_batch(), read().take_batch());
}

}  // namespace
}  // namespace cadre::data
