// Reads experiments again when they have changed, in a thread of its own, and takes little of the machine for it.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "dashboard/board.h"
#include "dashboard/experiments.h"

namespace cadre::dashboard {

struct ReaderOptions {
  std::chrono::milliseconds interval = std::chrono::seconds(1);          // looks for changes so often
  std::chrono::milliseconds remote_interval = std::chrono::seconds(10);  // in storages
  std::chrono::milliseconds forget_after = std::chrono::minutes(1);      // documents that nobody watches
  // Reading again takes at most this share of the machine's CPUs, so that trials do not notice. The first reading of an
  // experiment, that of the document of one that somebody opens, and those of experiments that do not run do not wait.
  double share = 0.015;
};

// The reader's thread calls run(); the board and the experiments outlive it.
class Reader {
 public:
  Reader(Board& board, Experiments& experiments, ReaderOptions options);
  // Returns after Board::stop(), once what it is reading has been read.
  void run();

  // One look at everything; for tests. Returns the time until the next one.
  std::chrono::milliseconds look(std::chrono::steady_clock::time_point now);

 private:
  using Time = std::chrono::steady_clock::time_point;

  struct Known {
    Place place = {};
    bool is_remote = false;
    Stamp stamp = {};  // when it was read last
    Stamp seen = {};   // now
    bool was_read = false;
    bool reads_on = false;
    // CPU time that reading takes, beside that for each byte of what is read.
    double cost_s = 0;
    double cost_of_byte_s = 0;
    Time looked_at = {};  // seen is of this time
    Time read_at = {};
    std::uint64_t mark = 0;         // of the search that has found it last
    std::optional<Time> left = {};  // nobody watches it since then
    Dict entry = {};
  };

  void find(Time now);
  std::string id_of(const std::string& location) const;
  void look_for_changes(Time now);
  // Returns the CPU time that reading an experiment again is expected to take, as its last readings tell.
  static double expected_cost_s(const Known& known);
  // Learns from a reading. `is_whole`: it was not only of what is new.
  static void learn_cost(Known& known, double cost_s, double bytes, bool is_whole);
  double rate() const;  // CPU time that reading again may take in each second
  // Returns the id of the experiment to read next; empty: none may be read now.
  std::string next(Time now);
  void read(const std::string& id);
  void forget(Time now);
  void update_list();

  Board& board_;
  Experiments& experiments_;
  ReaderOptions options_;
  std::map<std::string, Known> known_ = {};  // by id
  std::vector<std::string> faults_ = {};
  std::uint64_t searches_ = 0;
  Time next_search_ = {};
  double credit_s_ = 0;  // CPU time that reading again may take now
  Time credited_ = {};
  bool is_complete_ = false;  // all that was found has been read once
};

}  // namespace cadre::dashboard
