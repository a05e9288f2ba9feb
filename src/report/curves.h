// The curves of an experiment's trials, as columns, for the document of a report.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "cadre/tune/result.h"

namespace cadre::report {

// A place in a trial's results from which another trial has continued.
struct CurveOrigin {
  std::size_t trial = 0;    // index in the grid of the trial that wrote the checkpoint
  std::size_t segment = 0;  // number of its exploits before that
  std::size_t result = 0;   // index in its results; kNoResult: it had none
  static constexpr std::size_t kNoResult = static_cast<std::size_t>(-1);
};
// Returns the origin of each exploit, by the index of the trial. An exploit whose origin is unknown names the trial
// itself.
std::vector<std::vector<CurveOrigin>> origins_of(const tune::ResultGrid& grid);

struct Curves {
  // Paths of the numbers of the results, the experiment's metric first.
  std::vector<std::string> names = {};
  // For each trial its kept results: the number in each segment, which begins anew with each exploit, then a column for
  // each name, or 0 if the trial has no such numbers; consecutive integers are {"from": 1, "count": 30}. Null for a
  // trial without results, or one that is left out.
  List trials = {};
  std::size_t reduced = 0;         // number of trials with more results than were kept
  std::size_t columns_in_all = 0;  // number of paths, of which kMostColumns are there at most
  // For each trial, the index among the kept results of each origin of an exploit.
  std::vector<std::map<std::size_t, std::size_t>> kept_origins = {};

  static constexpr std::size_t kMostColumns = 48;
  static constexpr std::size_t kMostNumbers = 1'500'000;  // in all columns of all trials, about
  static constexpr std::size_t kMostRows = 2000;          // of a trial
  static constexpr std::size_t kFewestRows = 8;
};

// Makes the curves of an experiment, again and again if it grows: after the first time it reads only results that were
// added since. Keeps the numbers of all results in memory, 8 bytes each.
class CurveReader {
 public:
  // `chosen`: for each trial whether its curve is wanted. Trials and results may only have been added since the last
  // call.
  Curves read(const tune::ResultGrid& grid, const std::vector<std::vector<CurveOrigin>>& origins,
              const std::vector<bool>& chosen);

 private:
  // Numbers by result; NaN where there is none, and empty if there are none at all.
  using Column = std::vector<double>;

  struct Trial {
    std::size_t rows = 0;               // results that were read
    std::vector<Column> columns = {};   // by name; may be fewer
    std::set<std::size_t> needed = {};  // results that the curve has in any case

    // The curve that was made last, and of what.
    bool is_made = false;
    std::size_t exploits = 0;
    std::size_t limit = 0;
    Value curve = {};
    std::size_t kept = 0;
    std::map<std::size_t, std::size_t> kept_origins = {};
  };

  void read_results(const tune::ResultGrid& grid, const std::vector<bool>& chosen);
  std::size_t column_of(const std::string& path);
  void add(Trial& trial, const Dict& entries, const std::string& prefix, std::size_t row);
  std::size_t limit(const std::vector<bool>& chosen) const;
  void make_curve(Trial& trial, const tune::Result& result, std::size_t limit) const;

  std::vector<std::string> names_ = {};
  std::unordered_map<std::string, std::size_t> by_path_ = {};
  std::set<std::string> left_out_ = {};  // paths beyond kMostColumns
  std::vector<Trial> trials_ = {};
};

}  // namespace cadre::report
