#include "base/inner_path.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "cadre/error.h"
#include "support/message_of.h"
#include "support/temporary_directory.h"

namespace cadre::base {
namespace {

namespace fs = std::filesystem;
using test_support::message_of;
using test_support::TemporaryDirectory;
using test_support::write_bytes;
using testing::AllOf;
using testing::HasSubstr;

TEST(InnerPath, LeadsNowhereElse) {
  for (const char* path : {"a", "a/b", "a..b/..c", "...", "a b", ".a"}) EXPECT_EQ(InnerPath(path, "x").text(), path);
  using namespace std::string_view_literals;
  for (const std::string_view path : {""sv, "/"sv, "/a"sv, ".."sv, "../a"sv, "a/.."sv, "a/../b"sv, "."sv, "./a"sv,
                                      "a/."sv, "a//b"sv, "a/"sv, "a\0b"sv})
    EXPECT_THAT(message_of<StorageError>([&] { InnerPath(path, "the list"); }),
                AllOf(HasSubstr("the list"), HasSubstr("none inside its directory")))
        << path;
}

class Inside : public testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(root() / "a" / "b");
    fs::create_directories(outside() / "b");
    write_bytes(root() / "a" / "b" / "file", "inside");
    write_bytes(outside() / "b" / "file", "outside");
    fs::create_directory_symlink(outside(), root() / "link");
    fs::create_symlink(outside() / "b" / "file", root() / "a" / "file_link");
  }
  fs::path root() const { return directory_ / "root"; }
  fs::path outside() const { return directory_ / "outside"; }

  TemporaryDirectory directory_;
};

TEST_F(Inside, FilesAreOpenedAndLinksAreNotFollowed) {
  EXPECT_TRUE(open_inside(root(), {"a/b/file", "x"}, O_RDONLY));
  EXPECT_FALSE(open_inside(root(), {"a/b/none", "x"}, O_RDONLY));
  for (const char* path : {"link/b/file", "a/file_link"})
    EXPECT_THAT(message_of<StorageError>([&] { open_inside(root(), {path, "x"}, O_RDONLY); }), HasSubstr("a link"));
}

TEST_F(Inside, WhatIsRemovedIsRemovedThereOnly) {
  EXPECT_THAT(message_of<StorageError>([&] { remove_inside(root(), {"link/b", "x"}); }), HasSubstr("a link"));
  remove_inside(root(), {"a", "x"});
  EXPECT_FALSE(fs::exists(root() / "a"));
  remove_inside(root(), {"link", "x"});
  EXPECT_FALSE(fs::is_symlink(root() / "link"));
  remove_inside(root(), {"a/b/c", "x"});
  EXPECT_TRUE(fs::exists(outside() / "b" / "file")) << "what links lead to stays";
}

TEST_F(Inside, WhatIsRenamedStaysThere) {
  EXPECT_THAT(message_of<StorageError>([&] { rename_inside(root(), {"link/b", "x"}, {"b", "x"}); }),
              HasSubstr("a link"));
  EXPECT_THAT(message_of<StorageError>([&] { rename_inside(root(), {"a/b", "x"}, {"link/c", "x"}); }),
              HasSubstr("a link"));
  EXPECT_FALSE(rename_inside(root(), {"a/gone", "x"}, {"b", "x"}));
  EXPECT_FALSE(rename_inside(root(), {"gone/b", "x"}, {"b", "x"}));
  EXPECT_THAT(message_of<StorageError>([&] { rename_inside(root(), {"a/b", "x"}, {"gone/c", "x"}); }),
              HasSubstr("gone"));
  EXPECT_TRUE(rename_inside(root(), {"a/b", "x"}, {"b", "x"}));
  EXPECT_TRUE(fs::exists(root() / "b"));
  EXPECT_FALSE(fs::exists(root() / "a" / "b"));
}

}  // namespace
}  // namespace cadre::base
