#include "view/table.h"

#include <algorithm>

namespace cadre::view {
namespace {

constexpr std::size_t kWidestText = 20;
constexpr std::size_t kNarrowestText = 10;
constexpr std::size_t kGap = 2;     // spaces between two columns of the table
constexpr std::size_t kBorder = 4;  // "│ " and " │"

struct BoxCharacters {
  std::string_view upper_left, upper_right, lower_left, lower_right, left_tee, right_tee, across, down;
};

const BoxCharacters& box_characters(base::Encoding encoding) {
  static constexpr BoxCharacters utf8{"╭", "╮", "╰", "╯", "├", "┤", "─", "│"};
  static constexpr BoxCharacters ascii{"+", "+", "+", "+", "+", "+", "-", "|"};
  return encoding == base::Encoding::utf8 ? utf8 : ascii;
}

std::size_t width_of(const Cell& cell, std::size_t widest_text) {
  const std::size_t width = base::display_width(cell.text);
  return cell.number ? width : std::min(width, widest_text);
}

std::size_t width_of(const Column& column, std::size_t widest_text) {
  std::size_t width = width_of(column.head, widest_text);
  for (const Cell& cell : column.cells) width = std::max(width, width_of(cell, widest_text));
  return width;
}

std::size_t width_of(const std::vector<const Column*>& columns, std::size_t widest_text) {
  std::size_t width = kBorder + kGap * (columns.size() - 1);
  for (const Column* column : columns) width += width_of(*column, widest_text);
  return width;
}

std::string repeated(std::string_view text, std::size_t times) {
  std::string all;
  for (; times > 0; --times) all += text;
  return all;
}

// Returns the columns that fit when all texts are shortened to the minimum.
std::vector<const Column*> fitting(const Table& table, std::size_t width) {
  struct Candidate {
    const Column* column;
    std::size_t width;  // at least, with the gap before it
  };
  std::vector<Candidate> candidates;
  std::size_t needed = kBorder - kGap;
  for (const Column& column : table.columns) {
    candidates.push_back({&column, kGap + width_of(column, kNarrowestText)});
    needed += candidates.back().width;
  }
  while (needed > width) {
    const auto last = std::ranges::max_element(candidates.rbegin(), candidates.rend(), {},
                                               [](const Candidate& candidate) { return candidate.column->rank; });
    if (last->column->rank == 0) break;
    needed -= last->width;
    candidates.erase(std::next(last).base());
  }
  std::vector<const Column*> columns;
  for (const Candidate& candidate : candidates) columns.push_back(candidate.column);
  return columns;
}

class BoxedTable {
 public:
  BoxedTable(std::vector<const Column*> columns, std::size_t widest_text, base::Encoding encoding)
      : columns_(std::move(columns)), widest_text_(widest_text), encoding_(encoding), box_(box_characters(encoding)) {
    for (const Column* column : columns_) {
      widths_.push_back(width_of(*column, widest_text_));
      numbers_.push_back(std::ranges::any_of(column->cells, &Cell::number));
    }
    inner_width_ = width_of(columns_, widest_text_) - 2;
  }

  Line upper_border(const std::string& title) const {
    if (title.empty()) return {{border(box_.upper_left, box_.upper_right, inner_width_)}};
    const std::string shown = " " + base::first_columns(title, inner_width_ - 3, encoding_) + " ";
    return {{std::string(box_.upper_left).append(box_.across)},
            {shown, Style::bold},
            {border("", box_.upper_right, inner_width_ - 1 - base::display_width(shown))}};
  }
  Line rule() const { return {{border(box_.left_tee, box_.right_tee, inner_width_)}}; }
  Line lower_border() const { return {{border(box_.lower_left, box_.lower_right, inner_width_)}}; }

  Line head() const {
    return row([](const Column& column) -> const Cell& { return column.head; });
  }
  Line row(std::size_t index) const {
    return row([&](const Column& column) -> const Cell& { return column.cells[index]; });
  }

 private:
  std::string border(std::string_view left, std::string_view right, std::size_t width) const {
    return std::string(left) + repeated(box_.across, width) + std::string(right);
  }

  template <class CellOf>
  Line row(CellOf cell_of) const {
    Line line{{std::string(box_.down) + " "}};
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const Column& column = *columns_[i];
      const Cell& cell = cell_of(column);
      const bool right = cell.number || (numbers_[i] && &cell == &column.head);
      if (i > 0) line.push_back({std::string(kGap, ' ')});
      const auto shortened = column.keeps_beginning ? base::first_columns : base::last_columns;
      const std::string text = cell.number ? cell.text : shortened(cell.text, widest_text_, encoding_);
      const std::string blanks(widths_[i] - base::display_width(text), ' ');
      if (right) line.push_back({blanks});
      line.push_back({text, cell.style});
      if (!right) line.push_back({blanks});
    }
    line.push_back({" " + std::string(box_.down)});
    return line;
  }

  std::vector<const Column*> columns_;
  std::size_t widest_text_;
  base::Encoding encoding_;
  const BoxCharacters& box_;
  std::vector<std::size_t> widths_;
  std::vector<bool> numbers_;    // by column; true: it has numbers
  std::size_t inner_width_ = 0;  // between the outer borders
};

}  // namespace

std::size_t display_width(const Line& line) {
  std::size_t width = 0;
  for (const Span& span : line) width += base::display_width(span.text);
  return width;
}

std::string plain_text(const Line& line) {
  std::string text;
  for (const Span& span : line) text += span.text;
  return text;
}

Line first_columns(const Line& line, std::size_t columns, base::Encoding encoding) {
  if (display_width(line) <= columns) return line;
  Line cut;
  for (const Span& span : line) {
    const std::size_t width = base::display_width(span.text);
    if (width >= columns) {
      cut.push_back({base::first_columns(span.text + " ", columns, encoding), span.style});
      break;
    }
    cut.push_back(span);
    columns -= width;
  }
  return cut;
}

Lines format_table(const Table& table, std::size_t width, base::Encoding encoding) {
  const std::vector<const Column*> columns = fitting(table, width);
  std::size_t widest_text = kWidestText;
  while (widest_text > kNarrowestText && width_of(columns, widest_text) > width) --widest_text;
  const BoxedTable boxed(columns, widest_text, encoding);
  Lines lines{boxed.upper_border(table.title), boxed.head(), boxed.rule()};
  for (std::size_t i = 0; i < columns.front()->cells.size(); ++i) lines.push_back(boxed.row(i));
  lines.push_back(boxed.lower_border());
  for (Line& line : lines) line = first_columns(line, width, encoding);
  return lines;
}

}  // namespace cadre::view
