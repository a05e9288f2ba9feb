#include "tune/searcher_thread.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <stdexcept>
#include <thread>

namespace cadre::tune {
namespace {

// Suggests the thread that asks; throws for trial 13.
class NamesThread final : public Searcher {
 public:
  std::optional<Config> suggest(TrialIndex trial) const override {
    if (trial == 13) throw std::runtime_error("no");
    if (trial == 14) return std::nullopt;
    return Config{{"own_thread", std::this_thread::get_id() == made_in_}};
  }
  void on_trial_add(TrialIndex, const Config&) override {}
  void on_trial_end(TrialIndex, TrialStatus, const Metrics&) override {}

 private:
  std::thread::id made_in_ = std::this_thread::get_id();
};

class SearcherThreadTest : public ::testing::Test {
 protected:
  // Waits until the thread has called for a look, and looks.
  std::optional<Suggested> next() {
    EXPECT_EQ(woken_.get_future().wait_for(std::chrono::minutes(1)), std::future_status::ready);
    woken_ = {};
    return thread_.take();
  }

  std::promise<void> woken_;
  NamesThread searcher_;
  SearcherThread thread_{[this] { woken_.set_value(); }};
};

TEST_F(SearcherThreadTest, ComputesOneSuggestionAfterAnotherInAThreadOfItsOwn) {
  EXPECT_EQ(thread_.take(), std::nullopt);
  for (const TrialIndex trial : {3, 4}) {
    thread_.suggest(searcher_, trial);
    EXPECT_EQ(next(), (Suggested{trial, Config{{"own_thread", false}}}));
    EXPECT_EQ(thread_.take(), std::nullopt);
  }
  thread_.suggest(searcher_, 14);
  EXPECT_EQ(next(), (Suggested{14, std::nullopt}));
}

TEST_F(SearcherThreadTest, PassesOnWhatTheSearcherThrowsOnce) {
  thread_.suggest(searcher_, 13);
  EXPECT_THROW(next(), std::runtime_error);
  EXPECT_EQ(thread_.take(), std::nullopt);
  thread_.suggest(searcher_, 1);
  EXPECT_TRUE(next());
}

TEST_F(SearcherThreadTest, EndsWithoutTheSuggestionThatNobodyTakes) { thread_.suggest(searcher_, 1); }

}  // namespace
}  // namespace cadre::tune
