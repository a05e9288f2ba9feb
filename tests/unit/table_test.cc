#include "view/table.h"

#include <gmock/gmock.h>

namespace cadre::view {
namespace {

using testing::ElementsAre;

std::vector<std::string> lines_of(const Table& table, std::size_t width) {
  std::vector<std::string> texts;
  for (const Line& line : format_table(table, width, base::Encoding::utf8)) texts.push_back(plain_text(line));
  return texts;
}

TEST(Table, ATextThatIsTooLongKeepsItsEndOrItsBeginning) {
  const Cell name{.text = "experiments/of/today/net"};
  const Cell counts{.text = "31 TERMINATED, 2 RUNNING, 7 PENDING"};
  const Table table{.columns = {{.head = {.text = "name"}, .cells = {name}},
                                {.head = {.text = "trials"}, .cells = {counts}, .keeps_beginning = true}}};
  EXPECT_THAT(
      lines_of(table, 80),
      ElementsAre("╭────────────────────────────────────────────╮", "│ name                  trials               │",
                  "├────────────────────────────────────────────┤", "│ …iments/of/today/net  31 TERMINATED, 2 RU… │",
                  "╰────────────────────────────────────────────╯"));
}

TEST(Table, ColumnsOfTheHighestRankAreLeftOutWhereNotAllFit) {
  const Table table{.columns = {{.head = {.text = "trial"}, .cells = {{.text = "00001"}}},
                                {.head = {.text = "status"}, .rank = 2, .cells = {{.text = "RUNNING"}}},
                                {.head = {.text = "loss"}, .rank = 1, .cells = {{.text = "0.25", .number = true}}}}};
  EXPECT_THAT(lines_of(table, 18), ElementsAre("╭─────────────╮", "│ trial  loss │", "├─────────────┤",
                                               "│ 00001  0.25 │", "╰─────────────╯"));
}

// With a visit of all cells for each column that is left out this would take minutes.
TEST(Table, ManyColumnsAreLeftOutInOnePass) {
  constexpr std::size_t kRows = 300;
  const Column trial{.head = {.text = "trial"}, .cells = std::vector<Cell>(kRows, Cell{.text = "00001"})};
  const Column loss{
      .head = {.text = "loss"}, .rank = 1, .cells = std::vector<Cell>(kRows, Cell{.text = "0.25", .number = true})};
  Table table{.columns = {trial}};
  table.columns.resize(5000, loss);
  const std::vector<std::string> lines = lines_of(table, 18);
  ASSERT_EQ(lines.size(), kRows + kTableFrameLines);
  EXPECT_EQ(lines[1], "│ trial  loss │");
  EXPECT_EQ(lines[kRows], "│ 00001  0.25 │");
}

}  // namespace
}  // namespace cadre::view
