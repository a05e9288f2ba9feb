#include "tune/objects.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/directory.h"
#include "store/object_files.h"
#include "support/message_of.h"
#include "support/temporary_directory.h"
#include "tune/description.h"

namespace cadre::tune {
namespace {

using test_support::content_of;
using test_support::message_of;
using test_support::TemporaryDirectory;
using test_support::write_bytes;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

namespace fs = std::filesystem;

Reference object(const std::string& id) { return {"object", id}; }

std::vector<std::string> ids(const std::vector<control::ObjectUse>& uses) {
  std::vector<std::string> found;
  for (const control::ObjectUse& use : uses) found.push_back(use.id);
  return found;
}

TEST(Objects, EveryReferenceInAValueIsFoundWithItsPlace) {
  const Value value{{"a", object("1")},
                    {"b", list(object("2"), 5, Value{{"c", object("1")}})},
                    {"d", Reference{"checkpoint", "3"}},
                    {"e", "object"}};
  EXPECT_THAT(control::object_uses(value), ElementsAre(control::ObjectUse{"a", "1"}, control::ObjectUse{"b/0", "2"},
                                                       control::ObjectUse{"b/2/c", "1"}));
  EXPECT_THAT(control::object_uses(object("1"), "here"), ElementsAre(control::ObjectUse{"here", "1"}));
}

TEST(Objects, EveryOptionThatCanHaveOneIsLookedAt) {
  const Trainable trainable = with_parameters(Trainable("f"), {{"p", object("parameter")}});
  const PopulationBasedTraining pbt{
      .hyperparam_mutations = {{"m", list(object("mutation")).items()}, {"n", choice({object("mutated choice")})}}};
  const TunerOptions options{
      .param_space = {{"constant", object("constant")},
                      {"choice", choice({object("choice"), {{"nested", object("nested")}}})},
                      {"grid", grid_search({object("grid")})},
                      {"ordinal", ordinal({object("ordinal")})},
                      {"list", list(uniform(0, 1), object("item"))}},
      .tune_config = {.scheduler = pbt, .points_to_evaluate = {Config{{"constant", object("point")}}}}};
  EXPECT_THAT(ids(control::object_uses(describe(trainable, options))),
              UnorderedElementsAre("parameter", "mutation", "mutated choice", "constant", "choice", "nested", "grid",
                                   "ordinal", "item", "point"));
}

Trial trial_with(TrialStatus status, const std::string& id) {
  return {.id = "00007", .status = status, .config = {{"data", object(id)}}};
}

TEST(Objects, ObjectsAreInUseAsLongAsATrialIsToComeRunsOrHasFailed) {
  const Dict description{{"param_space", {{"x", object("option")}}}};
  const auto used = [&](std::vector<Trial> trials, std::int64_t to_come) {
    return ids(objects_in_use(description, trials, to_come));
  };
  const Trial terminated = trial_with(TrialStatus::terminated, "terminated");
  EXPECT_THAT(used({terminated}, 0), IsEmpty());
  EXPECT_THAT(used({terminated}, 1), ElementsAre("option"));
  EXPECT_THAT(used({}, 1), ElementsAre("option"));
  for (const TrialStatus status : {TrialStatus::pending, TrialStatus::running, TrialStatus::paused, TrialStatus::error})
    EXPECT_THAT(used({terminated, trial_with(status, "own")}, 0), ElementsAre("option", "own"));
}

TEST(Objects, AReferenceThatNobodyHoldsOrThatIsNoneIsAFaultWithItsPlace) {
  const ObjectRef held = put("held");
  const std::string gone = put("gone").id();
  Faults faults;
  check_objects({{"a", held}, {"b", {{"c", object(gone)}}}, {"d", object("../x")}}, faults);
  const std::string text = message_of<InvalidArgument>([&] { faults.throw_if_any("it"); });
  EXPECT_THAT(text, AllOf(HasSubstr("b/c: the object " + gone), HasSubstr("d: \"../x\" names no object"),
                          Not(HasSubstr(held.id()))));
}

TEST(Objects, WhatIsInUseMustBeThereAndEveryUseOfWhatIsNotIsNamed) {
  const TemporaryDirectory directory;
  std::string kept;
  std::string damaged;
  {
    const std::vector<ObjectRef> objects{put("kept"), put("damaged")};
    control::write_objects(directory.path(), objects);
    kept = objects[0].id();
    damaged = objects[1].id();
  }
  const std::string gone = put("gone").id();
  const std::vector<control::ObjectUse> good{{"a", kept}, {"b", damaged}};
  EXPECT_NO_THROW(control::require_objects(directory.path(), good, true));

  fs::remove(store::object_path(directory.path(), damaged));
  write_bytes(store::object_path(directory.path(), damaged), "Damaged");
  EXPECT_NO_THROW(control::require_objects(directory.path(), good, false)) << "its size is right";
  const std::vector<control::ObjectUse> uses{{"a", kept}, {"b", damaged}, {"c", gone}, {"d", gone}, {"e", "../x"}};
  EXPECT_THAT(message_of<StorageError>([&] { control::require_objects(directory.path(), uses, true); }),
              AllOf(HasSubstr("\n  b: "), HasSubstr("\n  c: the object " + gone + " is gone"), HasSubstr("\n  d: "),
                    HasSubstr("\n  e: "), Not(HasSubstr("\n  a: "))));
}

TEST(Objects, OneThatIsGoneAndIsHeldIsWrittenAgain) {
  const TemporaryDirectory directory;
  const ObjectRef missing = put("missing");
  const ObjectRef damaged = put("damaged");
  fs::create_directory(directory / "objects");
  write_bytes(store::object_path(directory.path(), damaged.id()), "Damaged");
  const std::vector<control::ObjectUse> uses{{"a", missing.id()}, {"b", damaged.id()}};
  control::require_objects(directory.path(), uses, true);
  EXPECT_EQ(content_of(store::object_path(directory.path(), missing.id())), "missing");
  EXPECT_EQ(content_of(store::object_path(directory.path(), damaged.id())), "damaged");
}

TEST(Objects, OneOfWhichAKilledProcessHasCopiedAPartIsSharedAgain) {
  const TemporaryDirectory source;
  const TemporaryDirectory run;
  std::string id;
  {
    const std::vector<ObjectRef> objects{put("shared")};
    control::write_objects(source.path(), objects);
    id = objects[0].id();
  }
  fs::create_directory(run / "objects");
  write_bytes(store::object_path(run.path(), id), "sha");
  control::share_objects(source.path(), run.path(), std::vector<control::ObjectUse>{{"a", id}});
  EXPECT_EQ(content_of(store::object_path(run.path(), id)), "shared");
}

TEST(Objects, OthersAreDeletedAndThoseThatAreHeldWithTheirHandle) {
  const TemporaryDirectory directory;
  std::vector<ObjectRef> objects{put("in use"), put("unused"), put("held")};
  control::write_objects(directory.path(), objects);
  const std::string in_use = objects[0].id();
  const std::string held_id = objects[2].id();
  std::optional<ObjectRef> held = objects[2];
  objects.clear();
  write_bytes(directory / ("objects/" + in_use + ".tmp"), "half");
  control::delete_other_objects(directory.path(), std::vector<control::ObjectUse>{{"a", in_use}});
  EXPECT_THAT(base::list_directory(directory / "objects"), UnorderedElementsAre(in_use, held_id));
  held.reset();
  EXPECT_THAT(base::list_directory(directory / "objects"), ElementsAre(in_use));
  control::delete_other_objects(directory.path(), {});
  EXPECT_FALSE(fs::exists(directory / "objects"));
}

}  // namespace
}  // namespace cadre::tune
