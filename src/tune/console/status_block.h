// The status block as lines: a summary, and tables of the trials. Pure: state in, lines out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "run/memory_usage.h"
#include "tune/console/status.h"
#include "tune/console/table.h"

namespace cadre::tune::console {

// When the block is shown.
struct Moment {
  double wall_seconds = 0;     // since 1970
  double running_seconds = 0;  // of the experiment, in all sessions
  std::int64_t sessions = 1;
  std::optional<run::MemoryUsage> memory = {};
};

// Where it is shown.
struct Page {
  std::size_t width = 120;
  std::optional<std::size_t> lines = {};  // that there are; empty: no limit, and lines of the summary are not cut
  std::size_t rows = 20;                  // of a table at most
  base::Encoding encoding = base::Encoding::utf8;
};

// Counts, times, resources, the scheduler's state and the best trial: at most five lines.
Lines format_summary(const ExperimentView& view, const Overview& overview, const Focus& focus, const Moment& moment,
                     const Page& page);

// A table of the trials with parameters and main metrics, and one with their progress and all other metrics; each as
// far as there are lines for it. None when there is no trial yet.
Lines format_tables(const ExperimentView& view, const Overview& overview, const Focus& focus, double wall_seconds,
                    const Page& page);

// "12.3s", "2min 5s", "1hr 2min 5s", "3d 1hr 2min 5s".
std::string duration_text(double seconds);

}  // namespace cadre::tune::console
