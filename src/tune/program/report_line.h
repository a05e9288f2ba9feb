// Lines that a program writes to the descriptor CADRE_REPORT_FD, and the answers. docs/programs.md describes them.
#pragma once

#include <string>
#include <string_view>

#include "cadre/value.h"

namespace cadre::tune {

struct ReportLine {
  enum class Kind {
    tell,   // a report; no answer is read
    ask,    // a report; the program waits for the answer
    offer,  // likewise, and it writes a checkpoint if it is asked for one
    saved,  // a checkpoint is complete
  };

  Kind kind = Kind::tell;
  Metrics metrics = {};        // of a report
  std::string directory = {};  // of a checkpoint; empty: CADRE_CHECKPOINT_OUT
};

// Parses a line, given without its line end. Throws InvalidArgument that shows it.
ReportLine parse_report_line(std::string_view line);

namespace answer {
inline constexpr std::string_view go_on = "continue\n";
inline constexpr std::string_view checkpoint = "checkpoint\n";
inline constexpr std::string_view stop = "stop\n";
}  // namespace answer

}  // namespace cadre::tune
