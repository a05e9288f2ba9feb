#include "base/archive.h"

#include <gtest/gtest.h>

#include "cadre/error.h"

namespace cadre::base {
namespace {

struct Amounts {
  std::map<std::string, double> by_name = {};

  static void fields(auto& archive, auto& amounts) { archive("by_name", amounts.by_name); }
};

TEST(Archive, AMapComesBack) {
  const Amounts saved{{{"cpu", 2}, {"gpu", 0.5}}};
  Amounts loaded;
  LoadArchive::load(SaveArchive::to_value(saved), loaded);
  EXPECT_EQ(loaded.by_name, saved.by_name);
}

TEST(Archive, AnEntryOfAMapThatIsNoPairIsRefused) {
  for (const Value& entry : {list(), list("cpu"), list("cpu", 1.0, 2)}) {
    Amounts loaded;
    EXPECT_THROW(LoadArchive::load(Value{{"by_name", list(entry)}}, loaded), InvalidArgument) << to_json(entry);
  }
}

}  // namespace
}  // namespace cadre::base
