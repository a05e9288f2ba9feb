// A status block that stays below the log on a terminal and is drawn anew in its place.
//
// Only the cursor moves: it rests at the beginning of the line below the block, visible, and no mode of the terminal is
// ever changed. So however the program ends, the terminal is as it was and the last block stays; a kill in the middle
// of a drawing leaves half a block, and at worst a colour. What others write in between is drawn over or pushes a part
// of the old block up.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "tune/console/table.h"

namespace cadre::tune::console {

struct WindowSize {
  std::size_t columns = 80;
  std::size_t lines = 24;
  bool operator==(const WindowSize&) const = default;
};

// The text as a terminal shows it in a style.
std::string styled(std::string_view text, Style style);

// What the terminal is to be sent. Pure: it knows what was drawn, and does no I/O.
class Screen {
 public:
  // With styles: bold, dim and colours.
  explicit Screen(bool styles) : styles_(styles) {}

  // Replaces the block. `log` consists of whole lines that go above it, each with its '\n', and may be longer than the
  // window is wide. The block's lines must be narrower than the window, and at least one fewer than it has. After a
  // change of the window's size, which moves what is on it in ways that differ between terminals, everything is
  // scrolled away first.
  std::string draw(WindowSize size, std::string_view log, const Lines& block);
  // The same with a block of any size that stays where it is: what comes then goes below.
  std::string finish(WindowSize size, std::string_view log, const Lines& block);

 private:
  std::string begin(WindowSize size, std::string_view log, bool erase);
  std::string render(const Line& line) const;

  bool styles_;
  std::size_t drawn_ = 0;  // lines of the block
  WindowSize size_ = {};   // when it was drawn
};

}  // namespace cadre::tune::console
