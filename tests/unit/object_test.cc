#include "cadre/object.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <span>
#include <string_view>
#include <vector>

#include "base/directory.h"
#include "store/held_objects.h"
#include "store/object_files.h"
#include "support/message_of.h"
#include "support/temporary_directory.h"

namespace cadre {
namespace {

using test_support::content_of;
using test_support::message_of;
using test_support::TemporaryDirectory;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

namespace fs = std::filesystem;

// Returns the number of memory files (memfd) that this process holds for objects.
std::size_t object_memory() {
  std::size_t count = 0;
  for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
    std::error_code closed;
    if (fs::read_symlink(entry, closed).string().starts_with("/memfd:cadre-object-")) ++count;
  }
  return count;
}

TEST(Object, WhatWasPutIsGot) {
  EXPECT_EQ(get(put("text")).text(), "text");
  EXPECT_EQ(get(put("")).text(), "");
  const std::vector<float> numbers{1, 2.5F, -3};
  EXPECT_THAT(get(put(numbers)).as<float>(), ElementsAre(1, 2.5F, -3));
  struct Point {
    std::int32_t x, y;
  };
  const std::array<Point, 2> points{{{1, 2}, {3, 4}}};
  EXPECT_EQ(get(put(points)).as<Point>()[1].y, 4);
  const std::array pieces{std::as_bytes(std::span("one", 3)), std::as_bytes(std::span("two", 3))};
  EXPECT_EQ(get(put_pieces(pieces)).text(), "onetwo");
}

TEST(Object, EqualContentsAreOneObjectAndItsMemoryGoesWithTheLastHandle) {
  const std::size_t before = object_memory();
  {
    const ObjectRef one = put("the same contents");
    const ObjectRef two = put(std::string("the same contents"));
    EXPECT_EQ(one.id(), two.id());
    EXPECT_EQ(one.size_bytes(), 17u);
    EXPECT_EQ(object_memory(), before + 1);
  }
  EXPECT_EQ(object_memory(), before);
  EXPECT_EQ(get(put("the same contents")).text(), "the same contents");
}

TEST(Object, WhatIsWrittenIsSeenByNobodyElse) {
  const ObjectRef ref = put("contents");
  const Object mine = get(ref);
  mine.bytes()[0] = std::byte{'C'};
  EXPECT_EQ(mine.text(), "Contents");
  EXPECT_EQ(Object(mine).text(), "Contents") << "a copy is the same mapping";
  EXPECT_EQ(get(ref).text(), "contents");
}

TEST(Object, AMappingStaysGoodWithoutHandles) {
  std::optional<ObjectRef> ref = put("contents");
  const Object object = get(*ref);
  ref.reset();
  EXPECT_EQ(object.text(), "contents");
}

TEST(Object, AnArrayOfItemsThatDoNotFitIsRefused) {
  EXPECT_THAT(message_of<InvalidArgument>([] { get(put("12345")).as<std::int32_t>(); }),
              AllOf(HasSubstr("5 bytes"), HasSubstr("4")));
}

TEST(Object, AConfigRefersToIt) {
  const ObjectRef ref = put("contents");
  const Config config{{"data", {{"images", ref}}}, {"lr", 0.1}};
  EXPECT_EQ(get_object(config, "data/images").text(), "contents");
  EXPECT_EQ(get(config.get<Reference>("data/images")).text(), "contents");
  EXPECT_THAT(message_of<InvalidArgument>([&] { get_object(config, "lr"); }), HasSubstr("\"lr\""));
  EXPECT_THROW(get_object(config, "labels"), NotFound);
}

TEST(Object, AReferenceToWhatIsNoObjectIsRefused) {
  for (const Reference& reference :
       {Reference{"checkpoint", "/tmp"}, Reference{"object", "../../etc/passwd"}, Reference{"object", ""}})
    EXPECT_THROW(get(reference), InvalidArgument) << reference.id;
}

TEST(Object, AReferenceThatNobodyHoldsIsNamed) {
  const Config config{{"data", put("soon gone")}};
  const std::string id = config.get<Reference>("data").id;
  EXPECT_THAT(message_of<NotFound>([&] { get_object(config, "data"); }), AllOf(HasSubstr("\"data\""), HasSubstr(id)));
}

TEST(Object, AsAFileItTakesNoMemoryAndIsStillThere) {
  const TemporaryDirectory directory;
  const std::size_t before = object_memory();
  const ObjectRef ref = put("contents");
  ObjectAccess::held(ref).write_into(directory.path());
  EXPECT_EQ(object_memory(), before);
  EXPECT_EQ(get(ref).text(), "contents");
  EXPECT_EQ(content_of(store::object_path(directory.path(), ref.id())), "contents");
}

TEST(Object, AFileThatTheExperimentNeedsStaysAndOneThatItDoesNotGoesWithTheHandle) {
  const TemporaryDirectory directory;
  fs::create_directory(directory / "a");
  fs::create_directory(directory / "b");
  std::optional<ObjectRef> ref = put("contents");
  const std::string id = ref->id();
  ObjectAccess::held(*ref).write_into(directory / "a");
  ObjectAccess::held(*ref).write_into(directory / "b");
  ObjectAccess::held(*ref).take_over_file(directory / "a");
  EXPECT_EQ(get(*ref).text(), "contents");
  ref.reset();
  EXPECT_FALSE(fs::exists(directory / "a/objects"));
  EXPECT_EQ(content_of(store::object_path(directory / "b", id)), "contents");
}

TEST(Object, AnotherExperimentThatGetsTheFileAgainKeepsIt) {
  const TemporaryDirectory directory;
  std::optional<ObjectRef> ref = put("contents");
  const fs::path file = store::object_path(directory.path(), ref->id());
  ObjectAccess::held(*ref).write_into(directory.path());
  ObjectAccess::held(*ref).take_over_file(directory.path());
  ObjectAccess::held(*ref).write_into(directory.path());
  ref.reset();
  EXPECT_TRUE(fs::exists(file));
}

TEST(Object, AForkThatEndsDeletesNothing) {
  const TemporaryDirectory directory;
  std::optional<ObjectRef> ref = put("contents");
  ObjectAccess::held(*ref).write_into(directory.path());
  ObjectAccess::held(*ref).take_over_file(directory.path());
  const pid_t child = ::fork();
  if (child == 0) {
    ref.reset();
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(get(*ref).text(), "contents");
}

TEST(Object, IsReadWhileItIsHeldAlsoIfSomebodyElseDeletesItsFile) {
  const TemporaryDirectory directory;
  const ObjectRef ref = put("contents");
  ObjectAccess::held(ref).write_into(directory.path());
  fs::remove(store::object_path(directory.path(), ref.id()));
  EXPECT_EQ(get(ref).text(), "contents");
  EXPECT_EQ(get(to_reference(put("contents"))).text(), "contents") << "the same object";
}

TEST(Object, InReachOfAControllerIsFoundInTheExperiment) {
  const TemporaryDirectory directory;
  const Reference reference = to_reference(put("of another process"));
  store::write_object(directory.path(), reference.id, std::as_bytes(std::span(std::string_view("of another process"))));
  EXPECT_THROW(get(reference), NotFound);
  {
    const store::ObjectsInReach objects(directory.path());
    EXPECT_EQ(get(reference).text(), "of another process");
    fs::remove(store::object_path(directory.path(), reference.id));
    EXPECT_THAT(message_of<NotFound>([&] { get(reference); }),
                AllOf(HasSubstr(reference.id), HasSubstr(directory.path().string())));
  }
  EXPECT_THROW(get(reference), NotFound);
}

}  // namespace
}  // namespace cadre
