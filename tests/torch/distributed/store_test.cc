// The store of process groups on a key-value store behaves like PyTorch's own stores.
#include "torch/distributed/store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "shared_store.h"

namespace cadre::distributed {
namespace {

using namespace std::chrono_literals;
using Bytes = std::vector<std::uint8_t>;
using StorePtr = c10::intrusive_ptr<c10d::Store>;

StorePtr over_shared_memory() { return make_store(std::make_shared<test_support::SharedStore>(), 20ms); }

StorePtr pytorchs() {
  auto store = c10::make_intrusive<c10d::HashStore>();
  store->setTimeout(20ms);
  return store;
}

struct Kind {
  std::string name;
  std::function<StorePtr()> make;
};

class StoreConformance : public testing::TestWithParam<Kind> {
 protected:
  StorePtr store_ = GetParam().make();
};

TEST_P(StoreConformance, ValuesOfAnyBytesAreKeptUnderTheirKeys) {
  const Bytes value{0, 1, 255, 0, 10};
  store_->set("key", value);
  EXPECT_EQ(store_->get("key"), value);
  store_->set("key", std::string("other"));
  EXPECT_EQ(store_->get_to_str("key"), "other");
  store_->set("empty", Bytes());
  EXPECT_EQ(store_->get("empty"), Bytes());
  EXPECT_EQ(store_->getNumKeys(), 2);
}

TEST_P(StoreConformance, GetAndWaitEndWithTheirTimeoutsOrWithTheValue) {
  EXPECT_ANY_THROW(store_->get("key"));
  EXPECT_ANY_THROW(store_->wait({"key"}));
  EXPECT_ANY_THROW(store_->wait({"key"}, 10ms));
  store_->setTimeout(c10d::Store::kNoTimeout);
  std::thread setter([&] {
    store_->set("first", std::string("1"));
    store_->set("key", std::string("value"));
  });
  EXPECT_EQ(store_->get_to_str("key"), "value");
  store_->wait({"first", "key"}, 1min);
  setter.join();
}

TEST_P(StoreConformance, AddCounts) {
  EXPECT_EQ(store_->add("count", 0), 0);
  EXPECT_EQ(store_->add("count", 5), 5);
  EXPECT_EQ(store_->add("count", -7), -2);
  EXPECT_EQ(store_->get_to_str("count"), "-2");
}

TEST_P(StoreConformance, CompareSetReplacesWhatIsAsExpected) {
  EXPECT_EQ(store_->compareSet("key", "expected", "new"), "expected") << "not there";
  EXPECT_FALSE(store_->check({"key"}));
  EXPECT_EQ(store_->compareSet("key", "", "new"), "new") << "not there, and nothing expected";
  EXPECT_EQ(store_->compareSet("key", "other", "newer"), "new");
  EXPECT_EQ(store_->compareSet("key", "new", "newer"), "newer");
  EXPECT_EQ(store_->get_to_str("key"), "newer");
}

TEST_P(StoreConformance, KeysAreCheckedAndDeleted) {
  store_->set("a", std::string("1"));
  store_->set("b", std::string("2"));
  EXPECT_TRUE(store_->check({"a", "b"}));
  EXPECT_FALSE(store_->check({"a", "c"}));
  EXPECT_TRUE(store_->deleteKey("a"));
  EXPECT_FALSE(store_->deleteKey("a"));
  EXPECT_FALSE(store_->check({"a"}));
  EXPECT_EQ(store_->getNumKeys(), 1);
}

TEST_P(StoreConformance, SeveralKeysAtOnceAndAppending) {
  store_->multiSet({"a", "b"}, {Bytes{1}, Bytes{2, 3}});
  EXPECT_EQ(store_->multiGet({"b", "a"}), (std::vector<Bytes>{{2, 3}, {1}}));
  store_->append("a", Bytes{4});
  store_->append("new", Bytes{5});
  EXPECT_EQ(store_->get("a"), (Bytes{1, 4}));
  EXPECT_EQ(store_->get("new"), Bytes{5});
}

TEST_P(StoreConformance, PrefixesKeepGroupsApart) {
  c10d::PrefixStore first("first", store_);
  c10d::PrefixStore second("second", store_);
  static_cast<c10d::Store&>(first).set("key", "1");
  EXPECT_FALSE(second.check({"key"}));
  static_cast<c10d::Store&>(second).set("key", "2");
  EXPECT_EQ(first.get_to_str("key"), "1");
  first.wait({"key"}, 10ms);
}

TEST_P(StoreConformance, ACloneIsTheSameStore) {
  const StorePtr clone = store_->clone();
  clone->set("key", std::string("value"));
  EXPECT_EQ(store_->get_to_str("key"), "value");
}

INSTANTIATE_TEST_SUITE_P(Stores, StoreConformance,
                         testing::Values(Kind{"Cadres", over_shared_memory}, Kind{"PyTorchs", pytorchs}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace cadre::distributed
