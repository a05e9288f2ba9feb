#include "base/spawn.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "base/file.h"
#include "base/file_descriptor.h"
#include "support/temporary_directory.h"

namespace cadre::base {
namespace {

namespace fs = std::filesystem;
using test_support::TemporaryDirectory;

int status_of(const Spawned& spawned) {
  int status = 0;
  EXPECT_EQ(spawned.error, 0);
  EXPECT_EQ(::waitpid(spawned.process, &status, 0), spawned.process);
  return status;
}

TEST(Spawn, AProgramHasTheEnvironmentDirectoryAndDescriptorsThatItIsGiven) {
  const TemporaryDirectory directory;
  const fs::path said = directory.path() / "said";
  const FileDescriptor file = open_file(said, O_WRONLY | O_CREAT, "write");
  // More than a short text, which a string keeps within itself.
  const std::string value(100, 'v');
  const Spawned spawned = spawn({.command = {"/bin/sh", "-c", "echo $NAME $(pwd) >&5"},
                                 .environment = std::vector<std::string>{"NAME=" + value},
                                 .directory = directory.path(),
                                 .descriptors = {{file.get(), 5}}});
  EXPECT_EQ(status_of(spawned), 0);
  EXPECT_EQ(read_file(said), value + " " + fs::canonical(directory.path()).string() + "\n");
}

TEST(Spawn, AProgramHasTheDefaultActionsOfSignalsAndAGroupOfItsOwn) {
  const auto before = ::signal(SIGTERM, SIG_IGN);
  const Spawned spawned = spawn({.command = {"sleep", "100"}, .in_own_group = true});
  ::signal(SIGTERM, before);
  ASSERT_EQ(spawned.error, 0);
  EXPECT_EQ(::getpgid(spawned.process), spawned.process);
  ::kill(-spawned.process, SIGTERM);
  const int status = status_of(spawned);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGTERM);
}

TEST(Spawn, AProgramThatIsNotThereIsAnError) { EXPECT_EQ(spawn({.command = {"/nowhere/program"}}).error, ENOENT); }

}  // namespace
}  // namespace cadre::base
