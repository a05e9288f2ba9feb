// Formats the status block: a summary, and tables of the trials. Pure: state in, lines out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "resources/memory_usage.h"
#include "tune/console/status.h"
#include "view/table.h"

namespace cadre::tune::console {

// The time and memory usage that the block shows.
struct Moment {
  double wall_seconds = 0;     // seconds since 1970
  double running_seconds = 0;  // of the experiment, over all sessions
  std::int64_t sessions = 1;
  bool is_paused = false;  // by the user
  std::optional<resources::MemoryUsage> memory = {};
};

// The size and encoding of the output.
struct Page {
  std::size_t width = 120;
  std::optional<std::size_t> lines = {};  // height; empty: no limit, and lines of the summary are not cut
  std::size_t rows = 20;                  // most rows of a table
  bool ranked = false;                    // the best trials by the metric, best first, instead of some of each status
  base::Encoding encoding = base::Encoding::utf8;
};

// Returns the counts, times, resources, the scheduler's state and the best trial: at most five lines.
view::Lines format_summary(const ExperimentView& view, const Overview& overview, const Focus& focus,
                           const Moment& moment, const Page& page);

// Returns a table of the trials with parameters and main metrics, and a table with their progress and all other
// metrics; each with as many rows as fit. Returns nothing if there is no trial yet.
view::Lines format_tables(const ExperimentView& view, const Overview& overview, const Focus& focus, double wall_seconds,
                          const Page& page);

// Returns "12.3s", "2min 5s", "1hr 2min 5s", "3d 1hr 2min 5s".
std::string duration_text(double seconds);

}  // namespace cadre::tune::console
