#include "engine/cluster/carried_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "base/directory.h"
#include "cadre/error.h"
#include "engine/cluster/agent_files.h"
#include "support/message_of.h"
#include "support/temporary_directory.h"

namespace cadre::engine::cluster {
namespace {

namespace fs = std::filesystem;
using test_support::message_of;
using test_support::TemporaryDirectory;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

void write(const fs::path& file, const std::string& text) {
  fs::create_directories(file.parent_path());
  std::ofstream(file) << text;
}

std::string text_of(const fs::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

class CarriedFilesTest : public ::testing::Test {
 protected:
  // Carries a place from one directory to the other; returns false if it did not become whole.
  bool carry(const std::string& place) {
    FileSender sender(place, from.path() / place);
    FileReceiver receiver(to.path(), place);
    while (!sender.is_done()) {
      if (receiver.take(sender.next())) return true;
    }
    return false;
  }

  TemporaryDirectory from;
  TemporaryDirectory to;
};

// ---- From one end to the other

TEST_F(CarriedFilesTest, ADirectoryArrivesAsItIs) {
  const std::string large(piece_bytes * 3, 'l');  // a whole number of pieces
  write(from.path() / "trial/checkpoint/model", large);
  write(from.path() / "trial/checkpoint/empty", "");
  write(from.path() / "trial/checkpoint/deep/.hidden", "h");
  write(from.path() / "trial/checkpoint/run", "#!/bin/sh\n");
  fs::permissions(from.path() / "trial/checkpoint/run", fs::perms::owner_exec, fs::perm_options::add);
  fs::create_directories(from.path() / "trial/checkpoint/deep/none");
  ASSERT_TRUE(carry("trial/checkpoint"));
  const fs::path arrived = to.path() / "trial/checkpoint";
  EXPECT_EQ(text_of(arrived / "model"), large);
  EXPECT_EQ(text_of(arrived / "deep/.hidden"), "h");
  EXPECT_TRUE(fs::is_directory(arrived / "deep/none"));
  EXPECT_EQ(::access((arrived / "run").c_str(), X_OK), 0);
  EXPECT_NE(fs::status(arrived / "model").permissions() & fs::perms::owner_exec, fs::perms::owner_exec);
  EXPECT_THAT(base::list_directory(to.path() / "trial"), ElementsAre("checkpoint"));
}

TEST_F(CarriedFilesTest, AFileArrivesInThePlaceOfAnother) {
  write(from.path() / "objects/1", "new");
  write(to.path() / "objects/1", "older");
  ASSERT_TRUE(carry("objects/1"));
  EXPECT_EQ(text_of(to.path() / "objects/1"), "new");
}

TEST_F(CarriedFilesTest, AFileIsKnownUnderAnotherNameAndNoOtherIsTakenForIt) {
  write(from.path() / "a/model", "m");
  write(from.path() / "b/model", "m");
  const KnownFile known(from.path() / "a");
  EXPECT_TRUE(known.is_at(from.path() / "a"));
  EXPECT_FALSE(known.is_at(from.path() / "b"));
  fs::rename(from.path() / "a", from.path() / "c");
  EXPECT_TRUE(known.is_at(from.path() / "c"));
  fs::remove_all(from.path() / "c");
  for (int i = 0; i < 100; ++i) {  // which would get its number
    write(from.path() / "d" / "model", "m");
    EXPECT_FALSE(known.is_at(from.path() / "d"));
    fs::remove_all(from.path() / "d");
  }
  EXPECT_FALSE(known.is_at(from.path() / "none"));
  EXPECT_FALSE(KnownFile().is_at(from.path() / "b"));
  EXPECT_FALSE(KnownFile(from.path() / "none").is_at(from.path() / "none"));
}

TEST_F(CarriedFilesTest, WhatIsNotWholeLeavesNothing) {
  write(from.path() / "trial/checkpoint/model", "m");
  {
    FileSender sender("trial/checkpoint", from.path() / "trial/checkpoint");
    FileReceiver receiver(to.path(), "trial/checkpoint");
    while (sender.next().kind != Piece::Kind::bytes) {
    }
    receiver.take({.kind = Piece::Kind::directory, .place = "trial/checkpoint"});
    EXPECT_FALSE(fs::exists(to.path() / "trial/checkpoint"));
  }
  EXPECT_THAT(base::list_directory(to.path() / "trial"), IsEmpty());
}

TEST_F(CarriedFilesTest, WhatCannotBeReadIsAFault) {
  EXPECT_THAT(message_of<StorageError>([&] { carry("trial/none"); }), HasSubstr("No such file or directory"));
  fs::create_directories(from.path() / "trial/links");
  fs::create_symlink("/etc/passwd", from.path() / "trial/links/passwd");
  EXPECT_THAT(message_of<StorageError>([&] { carry("trial/links"); }), HasSubstr("neither a file nor a directory"));
  fs::create_directories(from.path() / "trial/large");
  std::ofstream(from.path() / "trial/large/sparse").close();
  fs::resize_file(from.path() / "trial/large/sparse", max_carried_bytes + 1);
  EXPECT_THAT(message_of<StorageError>([&] { carry("trial/large"); }),
              HasSubstr("set storage_path to a file system that the nodes share"));
}

TEST_F(CarriedFilesTest, NoPieceLeavesItsPlace) {
  for (const char* path : {"../out", "/out", "a/../../out", "a//b", "."}) {
    FileReceiver receiver(to.path(), "trial/checkpoint");
    receiver.take({.kind = Piece::Kind::directory, .place = "trial/checkpoint"});
    for (const Piece::Kind kind : {Piece::Kind::directory, Piece::Kind::bytes})
      EXPECT_THROW(receiver.take({.kind = kind, .place = "trial/checkpoint", .path = path}), StorageError) << path;
  }
  FileReceiver receiver(to.path(), "trial/checkpoint");
  EXPECT_THROW(receiver.take({.kind = Piece::Kind::bytes, .place = "trial/checkpoint", .path = "a/b"}), StorageError);
  EXPECT_THROW(FileReceiver(to.path(), "x").take({.kind = Piece::Kind::end}), StorageError)
      << "nothing has come before";
  for (const char* place : {"../x", "/x", "", "a/./b"}) EXPECT_NE(fault_of_place(place), "") << place;
  EXPECT_EQ(fault_of_place("trial/.reporting_1_0"), "");
}

// ---- An agent's directory

class AgentFilesTest : public ::testing::Test {
 protected:
  struct Sent {
    Piece::Kind kind;
    std::string place, path, fault, bytes;
  };

  static WorkerSpec spec_in(const fs::path& directory, std::vector<std::string> needs = {}) {
    WorkerSpec spec;
    spec.directory = directory;
    spec.needs = std::move(needs);
    return spec;
  }
  static std::string text(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  static std::span<const std::byte> bytes(const std::string& text) { return std::as_bytes(std::span(text)); }
  void put(const std::string& place, const std::string& content) {
    files.take({.kind = Piece::Kind::bytes, .place = place, .bytes = bytes(content)});
    files.take({.kind = Piece::Kind::end, .place = place});
  }
  fs::path path(const std::string& place) const { return files.directory() / place; }

  std::vector<Sent> sent;
  std::vector<std::pair<std::string, std::string>> printed;
  AgentFiles files{{.piece =
                        [this](const Piece& piece) {
                          sent.push_back({piece.kind, piece.place, piece.path, piece.fault, text(piece.bytes)});
                        },
                    .printed =
                        [this](const Printed& one) {
                          printed.emplace_back(one.file, (one.begins_anew ? "anew:" : "") + text(one.bytes));
                        }}};
};

TEST_F(AgentFilesTest, TheDirectoryIsNewForEachSessionAndGoesWithTheAgent) {
  const fs::path first = files.directory();
  put("objects/1", "o");
  EXPECT_EQ(text_of(first / "objects/1"), "o");
  files.begin_anew();
  EXPECT_FALSE(fs::exists(first));
  const fs::path second = files.directory();
  EXPECT_THAT(base::list_directory(second), IsEmpty());
  {
    AgentFiles(std::move(files));
  }
  EXPECT_FALSE(fs::exists(second));
}

TEST_F(AgentFilesTest, ThereIsNoDirectoryWhereTheFolderForTemporaryFilesIsMissing) {
  const TemporaryDirectory parent;
  const test_support::TemporaryFilesIn here(parent);
  ::setenv("TMPDIR", (parent / "missing").c_str(), 1);
  files.begin_anew();
  EXPECT_TRUE(files.directory().empty());
}

TEST_F(AgentFilesTest, WhatIsFetchedIsSentAndStays) {
  write(path("trial/.reporting_1_0/model"), "m");
  files.fetch({"trial/.reporting_1_0"});
  files.fetch({"trial/.reporting_1_1"});
  while (files.send_more()) {
  }
  ASSERT_EQ(sent.size(), 4U);
  EXPECT_EQ(sent[1].path, "model");
  EXPECT_EQ(sent[1].bytes, "m");
  EXPECT_EQ(sent[2].kind, Piece::Kind::end);
  EXPECT_EQ(sent[3].place, "trial/.reporting_1_1");
  EXPECT_THAT(sent[3].fault, HasSubstr("No such file or directory"));
  files.move({"trial/.reporting_1_0", "trial/checkpoint_000000"});
  EXPECT_EQ(text_of(path("trial/checkpoint_000000/model")), "m");
  files.drop({"trial/checkpoint_000000"});
  EXPECT_THAT(base::list_directory(path("trial")), IsEmpty());
}

TEST_F(AgentFilesTest, WhatCannotBeWrittenIsToldOnceAndTheRestOfItIgnored) {
  write(path("objects"), "a file in the place of a directory");
  put("objects/1", "o");
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].place, "objects/1");
  EXPECT_NE(sent[0].fault, "");
  fs::remove(path("objects"));
  put("objects/1", "o");
  EXPECT_EQ(sent.size(), 1U);
  EXPECT_EQ(text_of(path("objects/1")), "o");
  for (const char* place : {"../cadre_left_its_place", "/cadre_left_its_place"}) {
    put(place, "o");
    files.fetch({place});
    files.move({place, "y"});
    files.move({"objects/1", place});
    files.drop({place});
  }
  EXPECT_EQ(text_of(path("objects/1")), "o");
  EXPECT_FALSE(fs::exists(files.directory().parent_path() / "cadre_left_its_place"));
}

TEST_F(AgentFilesTest, AWorkersDirectoryIsMadeAndWhatItPrintsThereIsSent) {
  EXPECT_EQ(files.begin(7, spec_in(path("trial"))), "");
  write(path("trial/stdout"), "one\n");
  write(path("trial/other"), "is not sent");
  const auto now = std::chrono::steady_clock::now();
  files.look(now);
  files.look(now + std::chrono::milliseconds(1));  // too soon
  EXPECT_THAT(printed, ElementsAre(Pair("trial/stdout", "one\n")));
  std::ofstream(path("trial/stdout"), std::ios::app) << "two\n";
  files.end(7);
  EXPECT_THAT(printed.back(), Pair("trial/stdout", "two\n"));
  EXPECT_EQ(files.next_look(), std::nullopt);
  EXPECT_EQ(files.begin(8, spec_in(path("trial"))), "");  // the next one of that trial
  std::ofstream(path("trial/stdout"), std::ios::app) << "three\n";
  files.end(8);
  EXPECT_THAT(printed.back(), Pair("trial/stdout", "three\n"));
  EXPECT_EQ(files.begin(9, spec_in(path("trial"))), "");
  write(path("trial/stdout"), "cut\n");
  files.end(9);
  EXPECT_THAT(printed.back(), Pair("trial/stdout", "anew:cut\n"));
}

TEST_F(AgentFilesTest, WhatIsPrintedInADirectoryThatWasDroppedIsSentFromItsBeginning) {
  EXPECT_EQ(files.begin(7, spec_in(path("trial"))), "");
  write(path("trial/stdout"), "one\n");
  files.end(7);
  files.drop({"trial"});
  EXPECT_FALSE(fs::exists(path("trial")));
  EXPECT_EQ(files.begin(8, spec_in(path("trial"))), "");
  write(path("trial/stdout"), "another\n");
  files.end(8);
  EXPECT_THAT(printed, ElementsAre(Pair("trial/stdout", "one\n"), Pair("trial/stdout", "another\n")));
}

// A worker that prints on and on would otherwise keep the agent from everything else.
TEST_F(AgentFilesTest, WhatIsPrintedWhileItIsSentIsSentTheNextTime) {
  std::size_t pieces = 0;
  std::optional<AgentFiles> busy;
  const auto print_more = [&](const Printed& one) {
    if (++pieces < 100) std::ofstream(busy->directory() / one.file, std::ios::app) << "more\n";
  };
  busy.emplace(AgentFiles::Send{.piece = [](const Piece&) {}, .printed = print_more});
  EXPECT_EQ(busy->begin(7, spec_in(busy->directory() / "trial")), "");
  write(busy->directory() / "trial/stdout", "one\n");
  const auto now = std::chrono::steady_clock::now();
  busy->look(now);
  EXPECT_EQ(pieces, 1U);
  busy->look(now + std::chrono::seconds(1));
  EXPECT_EQ(pieces, 2U);
}

TEST_F(AgentFilesTest, WhatIsPrintedAfterAFileWasEmptiedComesInThePlaceOfWhatWasThere) {
  EXPECT_EQ(files.begin(7, spec_in(path("trial"))), "");
  write(path("trial/stdout"), "one\n");
  const auto now = std::chrono::steady_clock::now();
  files.look(now);
  write(path("trial/stdout"), "");
  files.look(now + std::chrono::seconds(1));
  EXPECT_THAT(printed.back(), Pair("trial/stdout", "anew:"));
  write(path("trial/stdout"), "two\n");
  files.end(7);
  EXPECT_THAT(printed,
              ElementsAre(Pair("trial/stdout", "one\n"), Pair("trial/stdout", "anew:"), Pair("trial/stdout", "two\n")));
}

TEST_F(AgentFilesTest, WhatIsPrintedAfterAFileWasEmptiedIsWholeAlsoIfItIsMoreThanBefore) {
  EXPECT_EQ(files.begin(7, spec_in(path("trial"))), "");
  write(path("trial/stdout"), "one\n");
  const auto now = std::chrono::steady_clock::now();
  files.look(now);
  write(path("trial/stdout"), "of another beginning\n");
  files.look(now + std::chrono::seconds(1));
  EXPECT_THAT(printed.back(), Pair("trial/stdout", "anew:of another beginning\n"));
  std::ofstream(path("trial/stdout"), std::ios::app) << std::string(1000, 'x') << "\n";
  files.look(now + std::chrono::seconds(2));
  std::ofstream(path("trial/stdout"), std::ios::app) << "more\n";
  files.end(7);
  EXPECT_THAT(printed.back(), Pair("trial/stdout", "more\n"));
  EXPECT_EQ(files.begin(8, spec_in(path("trial"))), "");  // the next one of that trial
  write(path("trial/stdout"), std::string(2000, 'y'));
  files.end(8);
  EXPECT_THAT(printed.back(), Pair("trial/stdout", "anew:" + std::string(2000, 'y')));
}

TEST_F(AgentFilesTest, AWorkerWithoutWhatItNeedsIsNotStarted) {
  EXPECT_THAT(files.begin(7, spec_in(path("trial"), {"trial/checkpoint_000000"})),
              HasSubstr("No such file or directory"));
  EXPECT_EQ(files.begin(7, spec_in("/elsewhere", {"x"})), "") << "it does not work here";
}

}  // namespace
}  // namespace cadre::engine::cluster
