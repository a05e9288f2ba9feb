#include "control/guarded_callbacks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

namespace cadre::control {
namespace {

using ::testing::ElementsAre;

class Hooked {
 public:
  explicit Hooked(std::string name) : name_(std::move(name)) {}
  std::string name() const {
    if (name_.empty()) throw std::runtime_error("nameless");
    return name_;
  }
  int calls = 0;

 private:
  std::string name_;
};

class HookedList final : public GuardedCallbacks<Hooked> {
 public:
  explicit HookedList(const std::vector<std::shared_ptr<Hooked>>& callbacks) : GuardedCallbacks(callbacks) {}
  void hook(const Hooked* throws_in) {
    for_each("hook", [&](Hooked& hooked) {
      ++hooked.calls;
      if (&hooked == throws_in) throw std::runtime_error("no more");
    });
  }
};

TEST(GuardedCallbacks, OneThatThrowsIsCalledNoMoreAndNamedOnce) {
  const auto throws = std::make_shared<Hooked>("Throws");
  const auto other = std::make_shared<Hooked>("Other");
  HookedList callbacks({throws, other});
  callbacks.hook(throws.get());
  callbacks.hook(throws.get());
  EXPECT_THAT(callbacks.take_warnings(),
              ElementsAre("the callback Throws failed in hook, and is switched off: std::runtime_error: no more"));
  EXPECT_EQ(throws->calls, 1);
  EXPECT_EQ(other->calls, 2);
  EXPECT_THAT(callbacks.take_warnings(), ElementsAre());
}

TEST(GuardedCallbacks, OneWhoseNameThrowsIsDisabledAndItsPlaceIsNamed) {
  const auto nameless = std::make_shared<Hooked>("");
  const auto other = std::make_shared<Hooked>("Other");
  HookedList callbacks({other, nameless});
  EXPECT_THAT(callbacks.take_warnings(),
              ElementsAre("the callback 2 failed in name, and is switched off: std::runtime_error: nameless"));
  callbacks.hook(nullptr);
  EXPECT_EQ(nameless->calls, 0);
  EXPECT_EQ(other->calls, 1);
}

}  // namespace
}  // namespace cadre::control
