#include "dashboard/reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <thread>
#include <vector>

#include "dashboard/access.h"
#include "dashboard/board.h"
#include "dashboard/site.h"
#include "report/page.h"

namespace cadre::dashboard {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Experiments whose stamps a test changes, and which note what was read of them.
class FakeExperiments : public Experiments {
 public:
  std::map<std::string, std::string> stamps = {};
  std::vector<std::string> reads = {};
  double bytes = 1;
  bool is_running = true;
  bool reads_on = false;
  std::chrono::milliseconds cost = 0ms;  // CPU time of a reading

  Found find() override {
    Found found;
    for (const auto& [name, stamp] : stamps) found.places.push_back({"/results/" + name, name});
    return found;
  }
  Stamp stamp(const Place& place) override { return {stamps.at(place.name), bytes, is_running}; }
  bool is_remote(const Place&) override { return false; }
  Reading read(const Place& place, bool with_document) override {
    reads.push_back(place.name + (with_document ? "+" : ""));
    const auto end = std::chrono::steady_clock::now() + cost;
    while (std::chrono::steady_clock::now() < end) {
    }
    return {.entry = {{"name", place.name}},
            .document = with_document ? std::optional(Value(stamps.at(place.name))) : std::nullopt,
            .reads_on = reads_on};
  }
};

class ReaderTest : public ::testing::Test {
 protected:
  // Looks again, so much later that an interval has passed.
  void look() { reader_.look(std::chrono::steady_clock::now() + 1h); }
  std::vector<std::string> read() { return std::exchange(experiments_.reads, {}); }
  // Returns the id of an experiment, as the list has it.
  std::string id_of(const std::string& name) {
    const std::string text = board_.list().since(0).text;
    const std::size_t at = text.find("\":{\"name\":\"" + name + "\"");
    return at == std::string::npos ? "" : text.substr(at - 16, 16);
  }

  FakeExperiments experiments_;
  Board board_{"abc", [] {}};
  Reader reader_{board_, experiments_, {.interval = 0ms, .forget_after = 0ms, .share = 1000}};
};

TEST_F(ReaderTest, ReadsEachOnceAndThenWhatHasChanged) {
  experiments_.stamps = {{"a", "1"}, {"b", "1"}};
  look();
  EXPECT_THAT(read(), ::testing::UnorderedElementsAre("a", "b"));
  look();
  EXPECT_THAT(read(), IsEmpty());
  experiments_.stamps["b"] = "2";
  look();
  EXPECT_THAT(read(), ElementsAre("b"));
}

TEST_F(ReaderTest, MakesTheDocumentOfWhatIsWatchedOnly) {
  experiments_.stamps = {{"a", "1"}, {"b", "1"}};
  look();
  read();
  const std::shared_ptr<LiveDocument> document = board_.document(id_of("a"));
  document->watch();
  look();
  EXPECT_THAT(read(), ElementsAre("a+"));
  EXPECT_THAT(document->since(0).text, HasSubstr("data: \"1\""));
  experiments_.stamps = {{"a", "2"}, {"b", "2"}};
  look();
  EXPECT_THAT(read(), ::testing::UnorderedElementsAre("a+", "b"));
  EXPECT_THAT(document->since(1).text, HasSubstr("event: change"));
}

TEST_F(ReaderTest, ForgetsDocumentsThatNobodyWatches) {
  experiments_.stamps = {{"a", "1"}};
  look();
  const std::shared_ptr<LiveDocument> document = board_.document(id_of("a"));
  document->watch();
  look();
  look();
  EXPECT_TRUE(document->has_document());
  document->unwatch();
  look();
  look();
  EXPECT_FALSE(document->has_document());
}

TEST_F(ReaderTest, DropsWhatIsGoneAndKeepsTheIdOfWhatComesBack) {
  experiments_.stamps = {{"a", "1"}, {"b", "1"}};
  look();
  const std::string id = id_of("a");
  ASSERT_NE(board_.document(id), nullptr);
  experiments_.stamps.erase("a");
  look();
  EXPECT_EQ(board_.document(id), nullptr);
  EXPECT_EQ(id_of("a"), "");
  experiments_.stamps["a"] = "1";
  look();
  EXPECT_EQ(id_of("a"), id);
}

TEST_F(ReaderTest, TakesNoVersionOfWhatIsGoneForOneOfWhatComesBack) {
  experiments_.stamps = {{"a", "1"}};
  look();
  const std::string id = id_of("a");
  const std::shared_ptr<LiveDocument> before = board_.document(id);
  before->watch();
  look();
  const std::string text = before->since(0).text;
  const std::size_t at = text.find("id: ") + 4;
  const std::string known = text.substr(at, text.find('\n', at) - at);
  EXPECT_EQ(before->version_of(known), 1);
  experiments_.stamps.clear();
  look();
  experiments_.stamps["a"] = "2";
  look();
  const std::shared_ptr<LiveDocument> after = board_.document(id);
  after->watch();
  look();
  EXPECT_TRUE(after->has_document());
  EXPECT_EQ(after->version_of(known), 0);
}

TEST_F(ReaderTest, ReadsAgainOnlyOnceItsShareOfTheTimeIsEnough) {
  Reader reader(board_, experiments_, {.interval = 0ms, .forget_after = 1h, .share = 1e-6});
  const auto begin = std::chrono::steady_clock::now();
  experiments_.stamps = {{"a", "1"}, {"b", "1"}};
  experiments_.cost = 2ms;
  reader.look(begin);
  EXPECT_EQ(read().size(), 2);
  experiments_.stamps = {{"a", "2"}, {"b", "2"}};
  reader.look(begin + 1s);
  EXPECT_THAT(read(), IsEmpty());
  experiments_.stamps["c"] = "1";
  reader.look(begin + 2s);
  EXPECT_THAT(read(), ElementsAre("c"));  // nobody has read it yet
  experiments_.stamps["c"] = "2";
  reader.look(begin + 3s);
  EXPECT_THAT(read(), IsEmpty());
  experiments_.is_running = false;
  experiments_.stamps["c"] = "3";
  reader.look(begin + 4s);
  EXPECT_THAT(read(), ::testing::UnorderedElementsAre("a", "b", "c"));  // nobody would notice
  experiments_.is_running = true;
  experiments_.stamps = {{"a", "4"}, {"b", "4"}};
  reader.look(begin + 24h);
  EXPECT_EQ(read().size(), 2);
}

// Has a reader with little time, and an experiment.
class ReaderCostTest : public ReaderTest {
 protected:
  ReaderCostTest() {
    experiments_.stamps = {{"a", "1"}};
    experiments_.cost = 2ms;
  }

  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  Reader slow_{board_, experiments_, {.interval = 0ms, .forget_after = 1h, .share = 1e-6}};
};

TEST_F(ReaderCostTest, ExpectsThatWhatHasGrownCostsMore) {
  slow_.look(begin_);
  read();
  experiments_.stamps["a"] = "2";
  experiments_.bytes = 1e9;
  slow_.look(begin_ + 24h);
  EXPECT_THAT(read(), IsEmpty());
  experiments_.bytes = 1;
  slow_.look(begin_ + 25h);
  EXPECT_THAT(read(), ElementsAre("a"));
}

TEST_F(ReaderCostTest, DoesNotExpectThatReadingOnCostsWhatTheFirstReadingDid) {
  experiments_.reads_on = true;
  slow_.look(begin_);
  EXPECT_EQ(read().size(), 1);
  experiments_.stamps["a"] = "2";
  slow_.look(begin_ + 1s);
  EXPECT_THAT(read(), ElementsAre("a"));
  experiments_.stamps["a"] = "3";
  slow_.look(begin_ + 2s);  // the cost of reading on is known now, and there is not enough time for it yet
  EXPECT_THAT(read(), IsEmpty());
}

TEST_F(ReaderCostTest, ExpectsThatReadingOnCostsWhatTheNewBytesDo) {
  experiments_.reads_on = true;
  experiments_.bytes = 1e6;
  slow_.look(begin_);
  EXPECT_EQ(read().size(), 1);
  experiments_.stamps["a"] = "2";
  experiments_.bytes = 1e9;
  slow_.look(begin_ + 24h);
  EXPECT_THAT(read(), IsEmpty());
  experiments_.bytes = 1e6 + 1;
  slow_.look(begin_ + 25h);
  EXPECT_THAT(read(), ElementsAre("a"));
}

TEST_F(ReaderTest, EndsWhenTheBoardStops) {
  experiments_.stamps = {{"a", "1"}};
  Reader reader(board_, experiments_, {.interval = 1h});
  std::thread thread([&] { reader.run(); });
  board_.stop();
  thread.join();
}

// ---- A dashboard that has just been started

TEST_F(ReaderTest, StreamsAndPagesWaitForTheFirstSearch) {
  experiments_.stamps = {{"a", "1"}};
  look();
  const std::string id = id_of("a");

  Board board("def", [] {});
  Reader reader(board, experiments_, {.interval = 0ms});
  Site site("secret", board, nullptr);
  const auto get = [&](const std::string& target) {
    return site.handle({.target = "/secret/" + target, .host = "localhost"});
  };
  EXPECT_EQ(get("experiment?id=" + id).status, 200);
  const http::Response there = get("events?id=" + id);
  const http::Response elsewhere = get("events?id=0123456789abcdef");
  ASSERT_TRUE(there.events && elsewhere.events);
  EXPECT_EQ(there.events->next(), "");
  EXPECT_EQ(elsewhere.events->next(), "");
  reader.look(std::chrono::steady_clock::now());
  EXPECT_EQ(there.events->next(), "");  // watched from now on
  reader.look(std::chrono::steady_clock::now() + 1h);
  EXPECT_THAT(there.events->next(), HasSubstr("event: document"));
  EXPECT_THAT(elsewhere.events->next(), HasSubstr("event: gone"));
  EXPECT_EQ(elsewhere.events->next(), "");
  EXPECT_EQ(get("experiment?id=0123456789abcdef").status, 404);
  EXPECT_EQ(get("events?id=0123456789abcdef").status, 404);
  EXPECT_EQ(get("experiment").status, 404);
}

// ---- Who may ask

http::Request request(std::string host, std::string target = "/secret/", std::optional<std::string> origin = {}) {
  return {.target = std::move(target), .host = std::move(host), .origin = std::move(origin)};
}

TEST(Access, NeedsALoopbackNameTheTokenAndNoOtherOrigin) {
  for (const char* host : {"127.0.0.1", "127.0.0.1:80", "localhost:8000", "[::1]:1", "[::1]"})
    EXPECT_EQ(refusal_of(request(host), "secret"), std::nullopt) << host;
  for (const char* host :
       {"", ":80", "evil", "localhost.evil:80", "127.0.0.1.evil", "[::1", "[::1].evil", "::1", "LOCALHOST@evil"})
    EXPECT_EQ(refusal_of(request(host), "secret"), Refusal::foreign_host) << host;
  EXPECT_EQ(refusal_of(request("localhost:1", "/secret/", "http://localhost:1"), "secret"), std::nullopt);
  for (const char* origin : {"", "null", "http://localhost:2", "https://localhost:1", "http://evil"})
    EXPECT_EQ(refusal_of(request("localhost:1", "/secret/", origin), "secret"), Refusal::foreign_origin) << origin;
  for (const char* target :
       {"/", "", "/secre", "/secret2/", "/Secret/", "//secret/", "/?secret", "/a/secret/", "http://localhost/secret/"})
    EXPECT_EQ(refusal_of(request("localhost", target), "secret"), Refusal::wrong_token) << target;
  for (const char* target : {"/secret", "/secret/", "/secret?x", "/secret/events?id=1"})
    EXPECT_EQ(refusal_of(request("localhost", target), "secret"), std::nullopt) << target;
}

TEST(Access, KnowsItsOwnPagesByWhatTheBrowserSays) {
  const auto is_own = [](std::optional<std::string> origin, std::optional<std::string> site) {
    http::Request one = request("localhost:1", "/secret/control", std::move(origin));
    one.fetch_site = std::move(site);
    return is_from_own_page(one);
  };
  EXPECT_FALSE(is_own({}, {}));
  EXPECT_TRUE(is_own("http://localhost:1", {}));
  EXPECT_TRUE(is_own({}, "same-origin"));
  for (const char* site : {"", "cross-site", "same-site", "none", "Same-Origin"}) {
    EXPECT_FALSE(is_own({}, site)) << site;
    EXPECT_FALSE(is_own("http://localhost:1", site)) << site;
  }
}

TEST(Access, KnowsJson) {
  const auto is = [](const char* type) {
    http::Request one;
    one.content_type = type;
    return is_json(one);
  };
  for (const char* type :
       {"application/json", "Application/JSON", "application/json; charset=utf-8", "application/json ;x"})
    EXPECT_TRUE(is(type)) << type;
  for (const char* type : {"", "text/plain", "application/jsonp", "application/jso", "text/plain; application/json"})
    EXPECT_FALSE(is(type)) << type;
}

TEST(Access, KnowsWhatFollowsTheToken) {
  EXPECT_EQ(after_token("/secret/events?id=1"), "/events?id=1");
  EXPECT_EQ(after_token("/secret/"), "/");
  EXPECT_EQ(after_token("/secret"), "");
  EXPECT_EQ(after_token("/secret?x"), "?x");
}

// ---- The pages' files

std::string page(std::string_view name) { return report::served_page({&name, 1}, "cadre dashboard"); }

TEST(DashboardPages, HaveTheScriptsOfAReportAndNothingWithin) {
  const std::string report = page("report");
  const std::string experiment = page("experiment");
  std::string_view rest = report;
  for (std::size_t at = rest.find("<script src="); at != std::string_view::npos; at = rest.find("<script src=")) {
    rest.remove_prefix(at);
    const std::string line(rest.substr(0, rest.find('\n')));
    rest.remove_prefix(1);
    if (line.find("report.js") == std::string::npos) EXPECT_THAT(experiment, HasSubstr(line));
  }
  for (const std::string& one : {experiment, page("list")}) {
    EXPECT_THAT(one, HasSubstr("live.js"));
    EXPECT_THAT(one, ::testing::Not(HasSubstr("<script>")));
    EXPECT_THAT(one, ::testing::Not(HasSubstr("style=")));
    EXPECT_THAT(one, ::testing::Not(HasSubstr("Content-Security-Policy")));  // is a header
  }
}

}  // namespace
}  // namespace cadre::dashboard
