#include "datasets/idx.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "cadre/error.h"
#include "support/temporary_directory.h"

namespace {

using testing::AllOf;
using testing::HasSubstr;

class IdxTest : public testing::Test {
 protected:
  std::filesystem::path write(const std::string& name, const std::string& bytes) const {
    cadre::test_support::write_bytes(folder_ / name, bytes);
    return folder_ / name;
  }

  cadre::test_support::TemporaryDirectory folder_;
};

// Returns 3 images of 2x5 pixels with the values 0 to 29.
std::string small_idx() {
  std::string bytes{0, 0, 8, 3, 0, 0, 0, 3, 0, 0, 0, 2, 0, 0, 0, 5};
  for (char value = 0; value < 30; ++value) bytes.push_back(value);
  return bytes;
}

std::string gzipped(const std::string& bytes) {
  std::string packed(bytes.size() + 100, '\0');
  z_stream stream{};
  deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

std::string storage_error(const std::filesystem::path& file, std::size_t dimension_count = 3) {
  try {
    datasets::read_idx(file, dimension_count);
  } catch (const cadre::StorageError& error) {
    return error.what();
  }
  return "no error";
}

void expect_small(const datasets::IdxArray& array) {
  EXPECT_EQ(array.dimensions, (std::vector<std::size_t>{3, 2, 5}));
  ASSERT_EQ(array.elements.size(), 30U);
  for (std::size_t i = 0; i < 30; ++i) EXPECT_EQ(array.elements[i], i);
}

TEST_F(IdxTest, reads_plain_file) { expect_small(datasets::read_idx(write("plain", small_idx()), 3)); }

TEST_F(IdxTest, reads_gzipped_file_whatever_its_name) {
  expect_small(datasets::read_idx(write("packed.gz", gzipped(small_idx())), 3));
  expect_small(datasets::read_idx(write("packed", gzipped(small_idx())), 3));
}

TEST_F(IdxTest, file_cut_at_any_length_is_refused_with_both_sizes) {
  const std::string whole = small_idx();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const auto file = write("cut", whole.substr(0, size));
    EXPECT_THAT(storage_error(file), AllOf(HasSubstr(file.string()), HasSubstr("is cut"),
                                           HasSubstr(std::to_string(size) + " bytes, expected")));
  }
}

TEST_F(IdxTest, gzipped_file_cut_at_any_length_is_refused) {
  const std::string whole = gzipped(small_idx());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const auto file = write("cut.gz", whole.substr(0, size));
    EXPECT_THAT(storage_error(file), HasSubstr(file.string())) << "cut to " << size << " of " << whole.size();
  }
}

TEST_F(IdxTest, gzipped_file_with_wrong_checksum_is_refused) {
  std::string packed = gzipped(small_idx());
  packed[packed.size() - 8] ^= 1;
  EXPECT_THAT(storage_error(write("wrong.gz", packed)), HasSubstr("damaged or cut gzip file"));
}

TEST_F(IdxTest, longer_file_than_announced_is_refused) {
  EXPECT_THAT(storage_error(write("long", small_idx() + "x")), HasSubstr("too long: 47 bytes, expected 46"));
  EXPECT_THAT(storage_error(write("long.gz", gzipped(small_idx() + "x"))),
              HasSubstr("too long: 47 bytes, expected 46"));
}

TEST_F(IdxTest, other_formats_are_refused_by_what_is_wrong) {
  EXPECT_THAT(storage_error(write("text", "this is no IDX file at all")), HasSubstr("not an IDX file"));
  std::string floats = small_idx();
  floats[2] = 0x0D;
  EXPECT_THAT(storage_error(write("floats", floats)), HasSubstr("elements of IDX type 13, expected 8"));
  EXPECT_THAT(storage_error(write("images", small_idx()), 1), HasSubstr("3 dimensions, expected 1"));
}

TEST_F(IdxTest, header_that_announces_too_much_is_refused_before_memory_is_asked_for) {
  const std::string huge{0, 0, 8, 3, '\x7f', '\xff', '\xff', '\xff', '\x7f', '\xff', '\xff', '\xff', 0, 0, 0, 5};
  EXPECT_THAT(storage_error(write("huge", huge)), HasSubstr("more than 1 GiB"));
  const std::string empty{0, 0, 8, 3, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 5};
  EXPECT_THAT(storage_error(write("empty", empty)), HasSubstr("dimension of size 0"));
}

TEST_F(IdxTest, missing_file_and_directory_are_told_apart) {
  EXPECT_THROW(datasets::read_idx(folder_ / "nowhere", 3), cadre::NotFound);
  EXPECT_THAT(storage_error(folder_.path()), HasSubstr("no regular file"));
}

}  // namespace
