// Archives of numpy's; tests/compat/data_read_test.py compares what numpy writes with numpy.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <zlib.h>

#include <random>

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
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string deflated(const std::string& content) {
  z_stream stream = {};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(content.size() + 100, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(out.size() - stream.avail_out);
  deflateEnd(&stream);
  return out;
}

struct Member {
  std::string name = {};
  std::string content = {};
  bool is_compressed = false;
  int flags = 0;
  int method = -1;  // default: of is_compressed
};

std::string zip_of(const std::vector<Member>& members) {
  std::string files;
  std::string directory;
  for (const Member& member : members) {
    const std::string stored = member.is_compressed ? deflated(member.content) : member.content;
    const int method = member.method >= 0 ? member.method : member.is_compressed ? 8 : 0;
    const auto checksum =
        ::crc32(0, reinterpret_cast<const Bytef*>(member.content.data()), static_cast<uInt>(member.content.size()));
    const std::string numbers = little_endian_bytes(20, 2) +
                                little_endian_bytes(static_cast<std::uint64_t>(member.flags), 2) +
                                little_endian_bytes(static_cast<std::uint64_t>(method), 2) + little_endian_bytes(0, 4) +
                                little_endian_bytes(checksum, 4) + little_endian_bytes(stored.size(), 4) +
                                little_endian_bytes(member.content.size(), 4) +
                                little_endian_bytes(member.name.size(), 2) + little_endian_bytes(0, 2);
    directory += "PK\x01\x02" + little_endian_bytes(20, 2) + numbers + little_endian_bytes(0, 10) +
                 little_endian_bytes(files.size(), 4) + member.name;
    files += "PK\x03\x04" + numbers + member.name + stored;
  }
  const std::string end = "PK\x05\x06" + little_endian_bytes(0, 4) + little_endian_bytes(members.size(), 2) +
                          little_endian_bytes(members.size(), 2) + little_endian_bytes(directory.size(), 4) +
                          little_endian_bytes(files.size(), 4) + little_endian_bytes(0, 2);
  return files + directory + end;
}

class ReadNpz : public ::testing::Test {
 protected:
  ReadNpz() { fs::create_directories(root()); }
  void write(const std::string& name, const std::string& bytes) const { write_bytes(root() / name, bytes); }
  fs::path root() const { return directory_ / "arrays"; }
  Dataset read(NumpyOptions options = {}) const {
    options.file_extensions = {"npz"};
    return threads(read_numpy(root().string(), options));
  }
  std::string message_for(const std::string& bytes) const {
    write("1.npz", bytes);
    return message_of<StorageError>([&] { read().take_all(); });
  }

  TemporaryDirectory directory_;
};

const std::vector<Member> kTwo = {{"x.npy", npy_of("(2, 3)", 6), true}, {"y.npy", npy_of("(2,)", 2, 9)}};

TEST_F(ReadNpz, HasAColumnForEachArray) {
  write("1.npz", zip_of(kTwo));
  write("2.npz", zip_of({{"x.npy", npy_of("(1, 3)", 3, 6)}, {"y.npy", npy_of("(1,)", 1, 11), true}}));
  EXPECT_EQ(read().count(), 3);
  const Batch batch = read().take_batch();
  EXPECT_THAT(batch.columns(), ElementsAre("x", "y"));
  EXPECT_THAT(batch.row_shape("x"), ElementsAre(3));
  EXPECT_THAT(batch.values<std::uint8_t>("x"), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8));
  EXPECT_THAT(batch.values<std::uint8_t>("y"), ElementsAre(9, 10, 11));
  EXPECT_THAT(read().select_columns({"y"}).skip(1).take_batch().values<std::uint8_t>("y"), ElementsAre(10, 11));
}

TEST_F(ReadNpz, SaysWhyArraysAreNoColumns) {
  EXPECT_THAT(
      message_for(zip_of({{"x.npy", npy_of("(2,)", 2)}, {"y.npy", npy_of("(3,)", 3)}})),
      AllOf(HasSubstr("1.npz: its arrays \"x\" and \"y\" have 2 and 3 rows"), HasSubstr("a file of their own")));
  EXPECT_THAT(message_for(zip_of({{"x.npy", npy_of("(2,)", 2)}, {"x.npy", npy_of("(2,)", 2)}})),
              HasSubstr("it has two arrays \"x\": rename one"));
  EXPECT_THAT(message_for(zip_of({})), HasSubstr("it has no arrays"));
  EXPECT_THAT(message_for(zip_of({{"x.txt", "text"}})), HasSubstr("its array \"x.txt\": "));
}

TEST_F(ReadNpz, SaysWhatItCannotDecompress) {
  EXPECT_THAT(message_for(zip_of({{"x.npy", npy_of("(2,)", 2), false, 1}})), HasSubstr("\"x.npy\" is encrypted"));
  EXPECT_THAT(message_for(zip_of({{"x.npy", npy_of("(2,)", 2), false, 0, 14}})),
              HasSubstr("is compressed by method 14 of zip"));
  std::string damaged = zip_of(kTwo);
  damaged[damaged.find("\x09\x0a")] = 'x';
  EXPECT_THAT(message_for(damaged),
              HasSubstr("1.npz: it is a damaged zip archive: its file \"y.npy\" has another checksum"));
}

TEST_F(ReadNpz, SurvivesEveryCutAndDamagedBytes) {
  const std::string good = zip_of(kTwo);
  for (std::size_t size = 0; size < good.size(); size += 3)
    EXPECT_THAT(message_for(good.substr(0, size)), HasSubstr("it is a damaged zip archive")) << size;
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    std::string bytes = good;
    for (int fault = 0; fault < 3; ++fault) bytes[random() % bytes.size()] = static_cast<char>(random());
    write("1.npz", bytes);
    try {
      read().take_all();
    } catch (const StorageError&) {
    }
  }
}

TEST_F(ReadNpz, LeavesOutDamagedArchivesIfAsked) {
  write("1.npz", "no archive");
  write("2.npz", zip_of(kTwo));
  EXPECT_EQ(read({.on_error = OnError::skip}).count(), 2);
  EXPECT_EQ(read({.on_error = OnError::skip}).take_all().size(), 2U);
}

TEST_F(ReadNpz, RefusesOtherFilesBesideThem) {
  write("1.npz", zip_of(kTwo));
  write("2.npz", zip_of({{"x.npy", npy_of("(2, 3)", 6)}}));
  EXPECT_THAT(message_of<StorageError>([&] { read().take_all(); }), HasSubstr("have the same arrays, but "));
  write("3.npy", npy_of("(2,)", 2));
  EXPECT_THAT(message_of<InvalidArgument>(
                  [&] { threads(read_numpy(root().string(), {.file_extensions = {"npy", "npz"}})).take_all(); }),
              AllOf(HasSubstr("1.npz is an archive of arrays"), HasSubstr("as two datasets")));
}

}  // namespace
}  // namespace cadre::data
