#include "storage/remote_directory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/file.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "base/file.h"
#include "base/file_descriptor.h"
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

std::atomic<int> signals = 0;

// Returns true if a thread of this process waits in the kernel.
bool is_asleep(pid_t thread) {
  const std::string status = test_support::content_of(fmt::format("/proc/self/task/{}/stat", thread));
  const std::size_t name_end = status.rfind(')');
  return name_end != status.npos && status.substr(name_end).starts_with(") S");
}

TEST(RemoteDirectory, AProcessThatWaitsForTheDownloadOfAnotherOneWaitsOnAfterASignal) {
  const test_support::TemporaryDirectory directory;
  const fs::path list = directory / kRemoteFile;
  make_remote(directory.path(), {});
  base::FileDescriptor held(::open(list.c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_EQ(::flock(held.get(), LOCK_EX), 0);
  struct sigaction counts = {};
  struct sigaction before = {};
  counts.sa_handler = [](int) { ++signals; };
  ASSERT_EQ(::sigaction(SIGUSR1, &counts, &before), 0);

  std::atomic<pid_t> id = 0;
  std::atomic<bool> has_ended = false;
  std::string fault;
  std::thread waiting([&] {
    id = ::gettid();
    try {
      fetch(directory.path());
    } catch (const StorageError& error) {
      fault = error.what();
    }
    has_ended = true;
  });
  while (!has_ended && (id == 0 || !is_asleep(id))) std::this_thread::yield();
  ::pthread_kill(waiting.native_handle(), SIGUSR1);
  while (signals == 0 && !has_ended) std::this_thread::yield();
  fs::remove(list);  // the other one has downloaded the files
  held.reset();
  waiting.join();
  ::sigaction(SIGUSR1, &before, nullptr);
  EXPECT_EQ(fault, "");
}

}  // namespace
}  // namespace cadre::storage
