// A status block that stays below the log on a terminal and is redrawn in place.
//
// Only the cursor moves: it rests at the beginning of the line below the block, visible, and no mode of the terminal is
// ever changed. So however the program ends, the terminal is as before and the last block stays; a kill during a
// drawing leaves half a block, and at worst a colour. Other output in between is drawn over, or pushes a part of the
// old block up.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "view/table.h"

namespace cadre::view {

struct WindowSize {
  std::size_t columns = 80;
  std::size_t lines = 24;
  bool operator==(const WindowSize&) const = default;
};

// Returns the text with the terminal codes of a style.
std::string styled(std::string_view text, Style style);

// Computes the bytes to send to the terminal. Pure: it remembers the last drawing, and does no I/O.
class Screen {
 public:
  // `styles`: use bold, dim and colours.
  explicit Screen(bool styles) : styles_(styles) {}

  // Replaces the block. `log` consists of whole lines to write above it, each with its '\n'; they may be longer than
  // the window is wide. The block's lines must be narrower than the window, and at least one fewer than the window has.
  // After a change of the window's size, which moves the text in ways that differ between terminals, scrolls everything
  // away first.
  std::string draw(WindowSize size, std::string_view log, const Lines& block);
  // Like draw(), but the block may have any size and stays in its place: later output goes below.
  std::string finish(WindowSize size, std::string_view log, const Lines& block);

 private:
  std::string begin(WindowSize size, std::string_view log, bool erase);
  std::string render(const Line& line) const;

  bool styles_;
  std::size_t drawn_ = 0;  // lines of the last block
  WindowSize size_ = {};   // at the last drawing
};

}  // namespace cadre::view
