#include "storage/remote_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/file.h"
#include "cadre/error.h"
#include "support/temporary_directory.h"

namespace cadre::storage {
namespace {

namespace fs = std::filesystem;

const Value kSeven = Dict{{"size", 7}};

TEST(RemoteDirectory, AListGetsTheFilesOfOthersThatAreNotInItsWay) {
  Dict files{{"weights", kSeven}, {"deep/model", kSeven}, {"deep.txt", kSeven}};
  const Value other = Dict{{"size", 8}};
  add_files(files, {{"weights", other},
                    {"weights/0", other},
                    {"deep", other},
                    {"deep/model/part", other},
                    {"deep/other", other},
                    {"rank_1", other}});
  EXPECT_EQ(files, (Dict{{"weights", kSeven},
                         {"deep/model", kSeven},
                         {"deep.txt", kSeven},
                         {"deep/other", other},
                         {"rank_1", other}}));
}

TEST(RemoteDirectory, FilesOfPartsAreDownloadedFromTheirParts) {
  const test_support::TemporaryDirectory folder;
  const fs::path published = folder.path() / "published";
  for (const char* part : {"0", "1"}) {
    fs::create_directories(published / "stored" / part);
    std::ofstream(published / "stored" / part / "weights") << "part " << part << "\n";
  }
  std::ofstream(published / "stored/1/more") << "part 1\n";
  const Uri uri{.scheme = "file", .location = published.string()};
  const fs::path run = folder.path() / "run";
  fs::create_directories(run);
  write_published_to(run, uri);
  Dict files = in_part({{"weights", kSeven}}, "0");
  add_files(files, in_part({{"weights", kSeven}, {"more", kSeven}}, "1"));
  make_remote(run / "checkpoint", {.files = files, .place = "stored"});
  EXPECT_NE(base::read_file(run / "checkpoint" / kRemoteFile).find("\"format\": 4"), std::string::npos)
      << "a program that knows no parts must not look for the files elsewhere";
  fetch(run / "checkpoint");
  EXPECT_EQ(base::read_file(run / "checkpoint/weights"), "part 0\n");
  EXPECT_EQ(base::read_file(run / "checkpoint/more"), "part 1\n");
}

TEST(RemoteDirectory, AListThatIsNoneIsDamaged) {
  const test_support::TemporaryDirectory folder;
  for (const char* list : {"[]", "7", R"({"format": "4"})", R"({"format": 5, "files": {}, "place": ""})",
                           R"({"format": 3, "files": {"model": 7}, "place": ""})"}) {
    std::ofstream(folder.path() / kRemoteFile) << list;
    EXPECT_THROW(remote_files(folder.path()), StorageError) << list;
  }
}

TEST(RemoteDirectory, PathsThatLeadOutAreRefused) {
  const test_support::TemporaryDirectory folder;
  EXPECT_THROW(make_remote(folder.path() / "one", {.files = {{"../model", kSeven}}}), StorageError);
  EXPECT_THROW(make_remote(folder.path() / "two", {.files = in_part({{"model", kSeven}}, "..")}), StorageError);
  EXPECT_THROW(make_remote(folder.path() / "three", {.place = "/elsewhere"}), StorageError);
}

}  // namespace
}  // namespace cadre::storage
