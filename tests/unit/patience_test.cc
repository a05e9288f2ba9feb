#include "channel/patience.h"

#include <gtest/gtest.h>

namespace cadre::channel {
namespace {

using namespace std::chrono_literals;

TEST(Patience, PollsWhereAnswersUsuallyComeSoon) {
  Patience patience(100us);
  EXPECT_EQ(patience.time_to_poll(), 100us);
  for (int i = 0; i < 100; ++i) patience.answer_took(i % 10 == 0 ? 400us : 150us);
  EXPECT_EQ(patience.time_to_poll(), 100us);
}

TEST(Patience, DoesNotPollWhereTheyUsuallyComeLater) {
  Patience patience(100us);
  for (int i = 0; i < 100; ++i) patience.answer_took(i % 10 == 0 ? 50us : 300us);
  EXPECT_EQ(patience.time_to_poll(), 0us);
}

TEST(Patience, ForgetsALongPauseSoon) {
  Patience patience(100us);
  for (int i = 0; i < 10; ++i) patience.answer_took(1h);
  EXPECT_EQ(patience.time_to_poll(), 0us);
  int answers = 0;
  for (; patience.time_to_poll() == 0us && answers < 100; ++answers) patience.answer_took(20us);
  EXPECT_LE(answers, 12);
}

}  // namespace
}  // namespace cadre::channel
