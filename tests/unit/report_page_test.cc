#include "report/page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>

#include "base/json.h"
#include "cadre/error.h"
#include "report/cell.h"
#include "report/script_json.h"

namespace cadre::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// ---- JSON within a page

TEST(ScriptJson, IsCompactJson) {
  const Value value{{"a", list(1, -2.5, true, false, Value(), "text")}, {"b", Dict()}, {"c", List()}};
  EXPECT_EQ(to_script_json(value), R"({"a":[1,-2.5,true,false,null,"text"],"b":{},"c":[]})");
}

TEST(ScriptJson, NoTextEndsTheElementThatItStandsIn) {
  const std::string hostile = "</script><!--<script>&\"\\\n\x01\x7f";
  const std::string json = to_script_json(Value(hostile));
  EXPECT_THAT(json, Not(HasSubstr("<")));
  EXPECT_THAT(json, Not(HasSubstr(">")));
  EXPECT_THAT(json, Not(HasSubstr("&")));
  EXPECT_EQ(base::parse_json(json, "the page"), Value(hostile));
}

TEST(ScriptJson, HasAllCharactersInAscii) {
  const std::string text = "caf\xc3\xa9 \xe8\xa9\xb1 \xf0\x9f\x98\x80 \xe2\x80\xa8";
  const std::string json = to_script_json(Value(text));
  EXPECT_EQ(json, R"("caf\u00e9 \u8a71 \ud83d\ude00 \u2028")");
  EXPECT_EQ(base::parse_json(json, "the page"), Value(text));
}

TEST(ScriptJson, ReplacesWhatIsNoUtf8) {
  EXPECT_EQ(to_script_json(Value("a\xff\xed\xa0\x80z")), R"("a\ufffd\ufffd\ufffd\ufffdz")");
}

TEST(ScriptJson, HasGapsForWhatJsonHasNoNumberFor) {
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(to_script_json(list(std::nan(""), infinity, -infinity, 1e300, 0.1)), "[null,null,null,1e+300,0.1]");
}

// ---- Cells

TEST(Cell, KeepsNumbersAndTextsExactly) {
  const Value number(0.1234567890123456);
  EXPECT_EQ(cell_of(&number), number);
  const Value text("NaN");
  EXPECT_EQ(cell_of(&text), text);
  EXPECT_EQ(cell_of(nullptr), Value());
}

TEST(Cell, NamesWhatADoubleOfJavaScriptCannotHold) {
  const auto cell = [](const Value& value) { return to_json(cell_of(&value)); };
  EXPECT_EQ(cell(std::nan("")), R"({"number": "NaN"})");
  EXPECT_EQ(cell(-std::numeric_limits<double>::infinity()), R"({"number": "-Infinity"})");
  EXPECT_EQ(cell((std::int64_t{1} << 53) - 1), "9007199254740991");
  EXPECT_EQ(cell(std::int64_t{1} << 53), R"({"number": "9007199254740992"})");
  EXPECT_EQ(cell(std::numeric_limits<std::int64_t>::min()), R"({"number": "-9223372036854775808"})");
}

TEST(Cell, HasOtherValuesAsJson) {
  const auto cell = [](const Value& value) { return cell_of(&value); };
  EXPECT_EQ(cell(list(1, 2)), Value({{"json", "[1, 2]"}}));
  EXPECT_EQ(cell(true), Value({{"json", "true"}}));
  EXPECT_EQ(cell({{"number", "1"}}), Value({{"json", R"({"number": "1"})"}}));
}

TEST(Cell, PointsOfCurvesAreShort) {
  EXPECT_EQ(point_of(1.0 / 3), Value(0.3333333));
  EXPECT_EQ(point_of(123456789), Value(123456789.0));
  EXPECT_EQ(point_of(-1.23456789e-12), Value(-1.234568e-12));
  EXPECT_EQ(point_of(std::nan("")), Value());
}

// ---- The page

constexpr std::array kFiles = {
    PageFile{"index.html",
             "<title><!-- title --></title>\n<!-- licence LICENSE -->\n  <link rel=\"stylesheet\" href=\"a.css\">\n"
             "<!-- documents --> <!-- for report -->\n<script src=\"a.js\"></script>\n"
             "<script src=\"b.js\"></script> <!-- for list other -->\n<p>end</p>\n"},
    PageFile{"a.css", "p {}\n"}, PageFile{"a.js", "start();\n"}, PageFile{"LICENSE", "free\n"}};

TEST(ReportPage, HasEveryFileInItsPlace) {
  EXPECT_EQ(page_of({Value(1), Value("two")}, "a < b & c", kFiles),
            "<title>a &lt; b &amp; c</title>\n<!--\nfree\n-->\n<style>\np {}\n</style>\n"
            "<script type=\"application/json\" class=\"document\">1</script>\n"
            "<script type=\"application/json\" class=\"document\">\"two\"</script>\n"
            "<script>\nstart();\n</script>\n<p>end</p>\n");
}

TEST(ReportPage, OfADashboardNamesItsFiles) {
  constexpr std::string_view kNames[] = {"other"};
  EXPECT_EQ(served_page(kNames, "a & b", kFiles),
            "<title>a &amp; b</title>\n<!-- licence LICENSE -->\n  <link rel=\"stylesheet\" href=\"a.css\">\n"
            "<script src=\"a.js\"></script>\n<script src=\"b.js\"></script>\n<p>end</p>\n");
}

TEST(ReportPage, NamesAFileThatIsMissing) {
  const std::array files{PageFile{"index.html", "<script src=\"b.js\"></script>\n"}};
  EXPECT_THROW(page_of({}, "", files), NotFound);
}

TEST(ReportPage, OfTheProgramNeedsNoOtherFile) {
  const std::string page = page_of({Value()}, "title");
  for (const char* part : {"src=\"", "href=\"s", "href=\"t", "http://", "@import", "url("})
    EXPECT_THAT(page, Not(HasSubstr(part))) << part;
  EXPECT_THAT(page, HasSubstr("The MIT License"));
  EXPECT_THAT(page, HasSubstr("var uPlot="));
  EXPECT_LT(page.size(), 400'000);
}

}  // namespace
}  // namespace cadre::report
