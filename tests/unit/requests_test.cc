// Requests to a running controller, as files.
#include "control/requests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/directory.h"
#include "base/file.h"
#include "support/temporary_directory.h"

namespace cadre::control {
namespace {

namespace fs = std::filesystem;

using ::testing::UnorderedElementsAre;

class RequestsTest : public ::testing::Test {
 protected:
  RequestsTest() {
    base::make_own_directory(folder_);
    fs::permissions(folder_, fs::perms::owner_all);
  }

  // Writes a file that was last changed some time ago.
  void write(const std::string& name, const std::string& text, std::chrono::minutes ago = {}) {
    base::write_file(folder_ / name, text);
    fs::last_write_time(folder_ / name, fs::file_time_type::clock::now() - ago);
  }

  test_support::TemporaryDirectory run_;
  fs::path folder_ = run_.path() / Requests::kFolder;
  Requests requests_{run_.path()};
};

TEST_F(RequestsTest, AreTakenOldestFirstAndOnce) {
  write("b.json", R"({"request": {"do": "stop"}, "until": 1e12})");
  write("a.json", R"({"request": {"do": "pause"}, "until": 1e12})", std::chrono::minutes(1));
  const std::vector<Requests::Request> taken = requests_.take();
  ASSERT_EQ(taken.size(), 2U);
  EXPECT_EQ(taken[0].id, "a");
  EXPECT_EQ(Config(taken[1].content).get<std::string>("do"), "stop");
  EXPECT_TRUE(requests_.take().empty());
}

TEST_F(RequestsTest, AnswersThatNobodyFetchesAreRemovedAfterAnHour) {
  write("old.answer", "{}", std::chrono::minutes(61));
  write("recent.answer", "{}", std::chrono::minutes(59));
  write("old.note", "", std::chrono::minutes(61));
  requests_.take();
  EXPECT_THAT(base::list_directory(folder_), UnorderedElementsAre("recent.answer", "old.note"));
}

TEST_F(RequestsTest, NothingIsRemovedFromAFolderOfOthers) {
  write("old.answer", "{}", std::chrono::minutes(61));
  fs::permissions(folder_, fs::perms::all);
  requests_.take();
  EXPECT_TRUE(fs::exists(folder_ / "old.answer"));
}

}  // namespace
}  // namespace cadre::control
