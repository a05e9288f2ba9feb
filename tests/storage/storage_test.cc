// Tests of every storage: a directory, S3, Google's and Azure's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "base/checksum.h"
#include "object_server.h"
#include "storage/storage.h"
#include "support/message_of.h"
#include "support/temporary_directory.h"

namespace cadre::storage_tests {
namespace {

using storage::StorageFault;
using test_support::content_of;
using test_support::TemporaryDirectory;
using test_support::write_bytes;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class AnyStorage : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const std::string_view kind = GetParam();
    if (kind == "s3") server_.emplace(Service::s3);
    if (kind == "google") server_.emplace(Service::google);
    if (kind.starts_with("azure")) server_.emplace(Service::azure);
    if (kind == "azure_signature") server_->use_signature();
    const std::string uri = server_ ? server_->uri("root") : "file://" + (directory_ / "root").string();
    storage_ = storage::open_storage(storage::parse_uri(uri));
  }
  storage::Storage& storage() { return *storage_; }
  std::vector<std::string> names(const std::string& folder) {
    std::vector<std::string> found;
    for (const storage::StoredFile& file : storage().list(folder)) found.push_back(file.name);
    return found;
  }

  TemporaryDirectory directory_;

 private:
  std::optional<ObjectServer> server_;
  std::unique_ptr<storage::Storage> storage_;
};

INSTANTIATE_TEST_SUITE_P(Storages, AnyStorage, testing::Values("file", "s3", "google", "azure", "azure_signature"),
                         [](const auto& one) { return std::string(one.param); });

TEST_P(AnyStorage, ReadsWhatWasWritten) {
  std::string bytes("zero \0 and \xff", 12);
  storage().write("a/b", bytes);
  EXPECT_EQ(storage().read("a/b"), bytes);
  storage().write("a/b", "shorter");
  EXPECT_EQ(storage().read("a/b"), "shorter");
  storage().write("empty", "");
  EXPECT_EQ(storage().read("empty"), "");
  EXPECT_EQ(storage().read("a/c"), std::nullopt);
  EXPECT_EQ(storage().read("a"), std::nullopt) << "a folder is no file";
}

TEST_P(AnyStorage, CarriesFilesOfManyPiecesWithTheirChecksums) {
  std::string bytes(std::size_t{11} << 20, 'x');
  for (std::size_t i = 0; i < bytes.size(); i += 997) bytes[i] = static_cast<char>(i >> 8);
  write_bytes(directory_ / "large", bytes);
  write_bytes(directory_ / "nothing", "");
  const storage::Contents expected{static_cast<std::int64_t>(bytes.size()), base::checksum_of(bytes)};
  EXPECT_EQ(storage().upload(directory_ / "large", "folder/large=1,2"), expected);
  EXPECT_EQ(storage().download("folder/large=1,2", directory_ / "back"), expected);
  EXPECT_TRUE(content_of(directory_ / "back") == bytes);
  EXPECT_EQ(storage().upload(directory_ / "nothing", "folder/nothing").size, 0);
  EXPECT_EQ(storage().download("folder/nothing", directory_ / "back").size, 0);
  EXPECT_EQ(content_of(directory_ / "back"), "");
}

TEST_P(AnyStorage, ListsAllFilesBelowAFolder) {
  for (const char* name :
       {"trial/checkpoint_000000/model", "trial/checkpoint_000000/deep/er", "trial/result.json", "top"})
    storage().write(name, "12345");
  EXPECT_THAT(names("trial/checkpoint_000000"),
              ElementsAre("trial/checkpoint_000000/deep/er", "trial/checkpoint_000000/model"));
  EXPECT_THAT(names(""), ElementsAre("top", "trial/checkpoint_000000/deep/er", "trial/checkpoint_000000/model",
                                     "trial/result.json"));
  EXPECT_THAT(names("elsewhere"), ElementsAre());
  const auto found = storage().find("top");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->size, 5);
  EXPECT_NEAR(found->modified, static_cast<double>(std::time(nullptr)), 3600);
  EXPECT_FALSE(storage().find("trial"));
  EXPECT_FALSE(storage().find("to"));
}

TEST_P(AnyStorage, RemovesFilesAndFolders) {
  for (const char* name :
       {"trial/checkpoint_000000/model", "trial/checkpoint_000000/deep/er", "trial/checkpoint_0000001", "top"})
    storage().write(name, "x");
  storage().remove_folder("trial/checkpoint_000000");
  storage().remove("top");
  EXPECT_THAT(names(""), ElementsAre("trial/checkpoint_0000001"));
  storage().remove_folder("trial/checkpoint_000000");
  storage().remove("top");
  storage().remove("never/there");
}

TEST_P(AnyStorage, WritesOnACondition) {
  EXPECT_TRUE(storage().has_conditional_writes());
  EXPECT_THAT(names(""), ElementsAre()) << "trying it leaves nothing";
  const std::string name = "a b/(c)=+d~ü";
  EXPECT_EQ(storage().read_versioned(name), std::nullopt);
  EXPECT_EQ(storage().version_of(name), std::nullopt);
  const auto another = storage().write_if("another", "0", std::nullopt);
  ASSERT_TRUE(another);
  EXPECT_EQ(storage().write_if(name, "0", another), std::nullopt) << "there is none";
  const auto first = storage().write_if(name, "1", std::nullopt);
  ASSERT_TRUE(first);
  EXPECT_EQ(storage().write_if(name, "2", std::nullopt), std::nullopt) << "there is one";
  EXPECT_EQ(storage().version_of(name), first);
  const auto second = storage().write_if(name, "22", first);
  ASSERT_TRUE(second);
  EXPECT_NE(second, first);
  EXPECT_EQ(storage().write_if(name, "3", first), std::nullopt);
  EXPECT_EQ(storage().read_versioned(name), (storage::VersionedBytes{"22", *second}));
  EXPECT_EQ(storage().read(name), "22");
  const std::string large(std::size_t{9} << 20, 'x');
  write_bytes(directory_ / "file", large);
  const auto third = storage().upload_if(directory_ / "file", name, second);
  ASSERT_TRUE(third);
  EXPECT_EQ(storage().upload_if(directory_ / "file", name, second), std::nullopt);
  EXPECT_EQ(storage().read(name), large);
  EXPECT_EQ(storage().version_of(name), third);
}

// Exactly one of many writers that start from the same version succeeds.
TEST_P(AnyStorage, LetsOneOfManyWriteOnACondition) {
  constexpr int kThreads = 8;
  constexpr int kRounds = 20;
  auto version = storage().write_if("file", "begin", std::nullopt);
  for (int round = 0; round < kRounds; ++round) {
    std::array<std::optional<storage::Version>, kThreads> written;
    {
      std::vector<std::jthread> threads;
      for (int i = 0; i < kThreads; ++i)
        threads.emplace_back(
            [&, i] { written[i] = storage().write_if("file", std::to_string(100 * round + i), version); });
    }
    EXPECT_EQ(std::ranges::count_if(written, [](const auto& one) { return one.has_value(); }), 1);
    version = **std::ranges::find_if(written, [](const auto& one) { return one.has_value(); });
    EXPECT_EQ(storage().version_of("file"), version);
  }
}

TEST(S3, ThatIgnoresConditionsIsFoundOut) {
  ObjectServer server;
  const auto storage = storage::open_storage(storage::parse_uri(server.uri("root")));
  EXPECT_TRUE(storage->has_conditional_writes());
  server.ignore_conditions();
  EXPECT_FALSE(storage->has_conditional_writes());
}

// Some servers that speak S3's protocol are such. They could not be published to.
TEST(S3, WithoutConditionsIsWrittenAfterACheck) {
  ObjectServer server;
  const auto storage = storage::open_storage(storage::parse_uri(server.uri("root")));
  server.refuse_conditions();
  EXPECT_FALSE(storage->has_conditional_writes());
  EXPECT_THAT(storage->list(""), testing::IsEmpty());
  const auto first = storage->write_if("file", "1", std::nullopt);
  ASSERT_TRUE(first);
  EXPECT_EQ(storage->write_if("file", "another", std::nullopt), std::nullopt);
  EXPECT_EQ(storage->read_versioned("file"), (storage::VersionedBytes{"1", *first}));
  EXPECT_TRUE(storage->write_if("file", "2", first));
  EXPECT_EQ(storage->read("file"), "2");
}

// The write is sent again, and refused because of what it has written itself.
TEST(S3, ConditionsAreFoundAlsoIfTheAnswerToAWriteIsLost) {
  ObjectServer server;
  const auto storage = storage::open_storage(storage::parse_uri(server.uri("root")));
  server.fail("cut", 1);
  EXPECT_TRUE(storage->has_conditional_writes());
}

TEST(Google, ThatIgnoresConditionsIsFoundOut) {
  ObjectServer server(Service::google);
  const auto storage = storage::open_storage(storage::parse_uri(server.uri("root")));
  EXPECT_TRUE(storage->has_conditional_writes());
  server.ignore_conditions();
  EXPECT_FALSE(storage->has_conditional_writes());
}

// Arrow's file systems send up to eight requests, and leave markers of folders.
TEST(ObjectStorages, RemoveAnObjectInOneRequest) {
  for (const Service service : {Service::s3, Service::google}) {
    ObjectServer server(service);
    const auto storage = storage::open_storage(storage::parse_uri(server.uri("root")));
    storage->write("trial/checkpoint_000000/model", "x");
    const std::int64_t before = server.requests();
    storage->remove("trial/checkpoint_000000/model");
    EXPECT_EQ(server.requests() - before, 1);
    EXPECT_THAT(storage->list(""), testing::IsEmpty());
  }
}

TEST_P(AnyStorage, SaysWhatIsNotThere) {
  EXPECT_THAT(test_support::message_of<StorageFault>([&] { storage().download("a/b", directory_ / "x"); }),
              AllOf(HasSubstr("root/a/b"), HasSubstr("not there")));
  EXPECT_THROW(storage().upload(directory_ / "missing", "a"), StorageError);
  EXPECT_FALSE(storage().find("a"));
}

TEST_P(AnyStorage, AnUploadThatIsToStopIsGivenUp) {
  write_bytes(directory_ / "file", "contents");
  const std::atomic<bool> stop = true;
  const storage::FileToUpload file(directory_ / "file", &stop);
  EXPECT_THROW(storage().upload(file, "a"), Interrupted);
  EXPECT_THROW(storage().upload_if(file, "b", std::nullopt), Interrupted);
  EXPECT_NE(storage().read("a"), "contents");
  EXPECT_NE(storage().read("b"), "contents");
}

TEST_P(AnyStorage, IsUsedByManyThreadsAtATime) {
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 8; ++thread)
      threads.emplace_back([this, thread] {
        for (int i = 0; i < 8; ++i) {
          const std::string name = std::to_string(thread) + "/" + std::to_string(i);
          storage().write(name, name);
          EXPECT_EQ(storage().read(name), name);
        }
      });
  }
  EXPECT_EQ(storage().list("").size(), 64u);
}

// Without the retries and waits for a file system that is away.
TEST(FileStorage, SaysAtOnceThatANameIsTooLong) {
  const TemporaryDirectory directory;
  const auto storage = storage::open_storage(storage::parse_uri("file://" + directory.path().string()));
  const std::string name(1000, 'x');
  for (const std::function<void()>& act : std::vector<std::function<void()>>{
           [&] { storage->find(name); }, [&] { storage->read(name); }, [&] { storage->write(name, "x"); },
           [&] { storage->remove(name); }, [&] { storage->download(name, directory / "to"); },
           [&] { storage->list(name); }}) {
    try {
      act();
      ADD_FAILURE() << "nothing was thrown";
    } catch (const StorageFault& fault) {
      EXPECT_EQ(fault.kind(), StorageFault::Kind::lasting) << fault.what();
      EXPECT_THAT(fault.what(), HasSubstr("File name too long"));
    }
  }
}

// Uploads skip a local file that cannot be read, and are tried again while the storage does not answer.
TEST(FileStorage, TellsItsFaultsFromErrorsOfLocalFiles) {
  const TemporaryDirectory directory;
  const auto storage = storage::open_storage(storage::parse_uri("file://" + (directory / "root").string()));
  storage->write("file", "x");
  std::filesystem::create_symlink("file", directory / "root/link");
  EXPECT_THROW(storage->download("link", directory / "to"), StorageFault);
  // The kernel gives this file the size of a page and fewer bytes, so it ends early, as one that is cut meanwhile.
  const std::filesystem::path shorter = "/sys/devices/system/cpu/online";
  std::error_code missing;
  if (std::filesystem::file_size(shorter, missing) == content_of(shorter).size() || missing)
    GTEST_SKIP() << "there is no " << shorter;
  for (const std::function<void()>& act : std::vector<std::function<void()>>{
           [&] { storage->upload(shorter, "copy"); }, [&] { storage->upload_if(shorter, "copy", std::nullopt); }}) {
    try {
      act();
      ADD_FAILURE() << "nothing was thrown";
    } catch (const StorageFault& fault) {
      ADD_FAILURE() << fault.what();
    } catch (const StorageError& error) {
      EXPECT_THAT(error.what(), HasSubstr("became shorter"));
    }
  }
  EXPECT_FALSE(storage->find("copy"));
}

// ---- Faults of S3

TEST(S3, SaysWhatIsWrongAndWhatToDo) {
  ObjectServer server;
  const auto fault_of = [](const std::string& uri) {
    const auto storage = storage::open_storage(storage::parse_uri(uri));
    try {
      storage->write("name", "x");
    } catch (const StorageFault& fault) {
      return std::pair(fault.kind(), std::string(fault.what()));
    }
    return std::pair(StorageFault::Kind::lasting, std::string("nothing"));
  };
  auto [kind, message] = fault_of("s3://no-such-bucket/root");
  EXPECT_EQ(kind, StorageFault::Kind::lasting);
  EXPECT_THAT(message, AllOf(HasSubstr("s3://no-such-bucket/root/name"), HasSubstr("make the bucket")));

  server.fail("expired");
  std::tie(kind, message) = fault_of(server.uri("root"));
  EXPECT_EQ(kind, StorageFault::Kind::denied) << message;
  EXPECT_THAT(message, HasSubstr("renew"));

  server.fail("denied");
  std::tie(kind, message) = fault_of(server.uri("root"));
  EXPECT_EQ(kind, StorageFault::Kind::denied) << message;
  EXPECT_THAT(message, HasSubstr("right to"));

  for (const char* passing : {"500", "503", "refuse", "cut"}) {
    server.fail(passing);
    std::tie(kind, message) = fault_of(server.uri("root"));
    EXPECT_EQ(kind, StorageFault::Kind::passing) << passing << ": " << message;
  }
}

TEST(S3, TriesThreeTimesByItself) {
  ObjectServer server;
  const auto storage = storage::open_storage(storage::parse_uri(server.uri("root")));
  for (const char* fault : {"500", "503", "refuse", "cut"}) {
    storage->write("name", fault);
    server.fail(fault, 2);
    EXPECT_EQ(storage->read("name"), fault);
    server.fail(fault, 2);
    storage->write("other", fault);
    EXPECT_EQ(storage->read("other"), fault);
    server.well();
  }
}

TEST(S3, GivesUpAServerThatDoesNotAnswer) {
  ObjectServer server;
  const auto storage = storage::open_storage(storage::parse_uri(server.uri("root")));
  server.fail("hang");
  try {
    storage->write("name", "x");
    FAIL() << "it was written";
  } catch (const StorageFault& fault) {
    EXPECT_EQ(fault.kind(), StorageFault::Kind::passing) << fault.what();
  }
}

TEST(ObjectStorage, RefusesWhatNobodyKnows) {
  const auto open = [](const char* uri) {
    return test_support::message_of<InvalidArgument>([&] { storage::open_storage(storage::parse_uri(uri)); });
  };
  EXPECT_THAT(open("ftp://host/folder"), AllOf(HasSubstr("ftp://host/folder"), HasSubstr("s3, gs, abfs")));
  EXPECT_THAT(open("s3://bucket/folder?nonsense=1"), HasSubstr("nonsense"));
}

// No connection is made before the first request.
TEST(ObjectStorage, MakesTheFileSystemsOfGoogleAndAzure) {
  EXPECT_NE(storage::open_storage(storage::parse_uri("gs://anonymous@bucket/folder")), nullptr);
  EXPECT_NE(storage::open_storage(storage::parse_uri("abfs://container@account.dfs.core.windows.net/folder")), nullptr);
}

}  // namespace
}  // namespace cadre::storage_tests
