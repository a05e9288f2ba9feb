#include "dashboard/reader.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <thread>
#include <utility>
#include <vector>

#include "base/checksum.h"

namespace cadre::dashboard {
namespace {

using std::chrono::duration_cast;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr int kSearchShare = 20;            // a search may take one part of so many of the time
constexpr int kWatchedAdvantage = 10;       // what is watched is read again so many times as often
constexpr double kMostIdleCredit_s = 0.05;  // CPU time that is saved up while nothing changes
constexpr milliseconds kListInterval(200);  // while experiments are read for the first time

std::chrono::nanoseconds cpu_time() {
  timespec time = {};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

}  // namespace

Reader::Reader(Board& board, Experiments& experiments, ReaderOptions options)
    : board_(board), experiments_(experiments), options_(options), credited_(steady_clock::now()) {}

void Reader::run() {
  do {
  } while (board_.sleep(look(steady_clock::now())));
}

milliseconds Reader::look(Time now) {
  if (now >= next_search_) find(now);
  look_for_changes(now);
  Time listed = steady_clock::now();
  for (std::string id = next(now); !id.empty() && !board_.stopped(); id = next(steady_clock::now())) {
    read(id);
    if (steady_clock::now() < listed + kListInterval) continue;
    update_list();
    listed = steady_clock::now();
    look_for_changes(listed);
  }
  is_complete_ = std::ranges::all_of(known_, [](const auto& one) { return one.second.was_read; });
  forget(steady_clock::now());
  update_list();
  return options_.interval;
}

double Reader::expected_cost_s(const Known& known) {
  const double read = known.reads_on ? known.stamp.bytes : 0;
  return known.cost_s + known.cost_of_byte_s * std::max(0.0, known.seen.bytes - read);
}

void Reader::learn_cost(Known& known, double cost_s, double bytes, bool is_whole) {
  if (is_whole && bytes > 0) known.cost_of_byte_s = cost_s / bytes;
  // The cost of reading on, beside that of the bytes, is known once it was done.
  known.cost_s = is_whole && known.reads_on ? 0 : std::max(0.0, cost_s - known.cost_of_byte_s * bytes);
}

double Reader::rate() const { return options_.share * std::max(1U, std::thread::hardware_concurrency()); }

std::string Reader::id_of(const std::string& location) const {
  for (int again = 0;; ++again) {
    const std::string text = again == 0 ? location : fmt::format("{}\n{}", location, again);
    std::string id = fmt::format("{:016x}", base::checksum_of(text));
    const auto found = known_.find(id);
    if (found == known_.end() || found->second.place.location == location) return id;
  }
}

void Reader::find(Time now) {
  Found found = experiments_.find();
  ++searches_;
  for (Place& place : found.places) {
    const std::string id = id_of(place.location);
    Known& known = known_[id];
    known.mark = searches_;
    known.place = std::move(place);
    known.is_remote = experiments_.is_remote(known.place);
    board_.add(id, known.place.location);
  }
  for (auto it = known_.begin(); it != known_.end();) {
    if (it->second.mark == searches_) {
      ++it;
    } else {
      board_.remove(it->first);
      it = known_.erase(it);
    }
  }
  board_.note_search();
  faults_ = std::move(found.faults);
  const bool any_remote = std::ranges::any_of(known_, [](const auto& one) { return one.second.is_remote; });
  const auto took = duration_cast<milliseconds>(steady_clock::now() - now);
  next_search_ = steady_clock::now() + std::max({options_.interval, took * kSearchShare,
                                                 any_remote ? options_.remote_interval : milliseconds(0)});
}

void Reader::look_for_changes(Time now) {
  for (auto& [id, known] : known_) {
    const milliseconds interval = known.is_remote ? options_.remote_interval : options_.interval / 2;
    if (!known.seen.text.empty() && now < known.looked_at + interval) continue;
    known.seen = experiments_.stamp(known.place);
    known.looked_at = now;
  }
}

std::string Reader::next(Time now) {
  const std::string* chosen = nullptr;
  bool is_first = false;  // the chosen one does not wait
  std::chrono::nanoseconds longest(-1);
  for (const auto& [id, known] : known_) {
    const std::shared_ptr<LiveDocument> document = board_.document(id);
    const bool is_watched = document->watchers() > 0;
    const bool is_wanted = is_watched && !document->has_document();
    // An experiment that has ended is read at once, too: no trial notices.
    const bool has_ended = !known.seen.is_running && known.seen.text != known.stamp.text;
    const bool is_new = !known.was_read || is_wanted || has_ended;
    if (!is_new && (known.seen.text == known.stamp.text || now < known.read_at + options_.interval)) continue;
    auto waits = now - known.read_at;
    if (is_watched) waits *= kWatchedAdvantage;
    if (is_wanted) waits = std::chrono::nanoseconds::max();
    if ((is_new && !is_first) || (is_new == is_first && waits > longest)) {
      chosen = &id;
      is_first = is_new;
      longest = waits;
    }
  }
  if (chosen == nullptr) return {};
  // Others do not go first because they cost less: what costs much would never be read.
  const double cost_s = expected_cost_s(known_.at(*chosen));
  const std::chrono::duration<double> passed = std::max(now, credited_) - credited_;
  credit_s_ = std::min(credit_s_ + passed.count() * rate(), std::max(kMostIdleCredit_s, cost_s));
  credited_ = std::max(now, credited_);
  return is_first || credit_s_ >= cost_s ? *chosen : std::string();
}

void Reader::read(const std::string& id) {
  Known& known = known_.at(id);
  const std::shared_ptr<LiveDocument> document = board_.document(id);
  const bool is_wanted = document->watchers() > 0 && !document->has_document();
  const bool with_document = is_wanted || document->has_document();
  const auto begin = cpu_time();
  const double bytes_before = known.stamp.bytes;
  known.seen = known.stamp = experiments_.stamp(known.place);
  known.looked_at = steady_clock::now();
  Reading reading = experiments_.read(known.place, with_document);
  if (reading.document && document->update(*std::move(reading.document))) board_.notify();
  const bool was_read = std::exchange(known.was_read, true);
  known.entry = std::move(reading.entry);
  known.read_at = steady_clock::now();
  const bool is_first = !was_read || is_wanted;
  const double cost_s = std::chrono::duration<double>(cpu_time() - begin).count();
  known.reads_on = reading.reads_on;
  const bool is_whole = is_first || !known.reads_on;
  learn_cost(known, cost_s, known.stamp.bytes - (is_whole ? 0 : std::min(bytes_before, known.stamp.bytes)), is_whole);
  if (!is_first && known.stamp.is_running) credit_s_ -= cost_s;
}

void Reader::forget(Time now) {
  for (auto& [id, known] : known_) {
    const std::shared_ptr<LiveDocument> document = board_.document(id);
    if (document->watchers() > 0 || !document->has_document()) {
      known.left.reset();
    } else if (!known.left) {
      known.left = now;
    } else if (now >= *known.left + options_.forget_after) {
      document->clear();
      known.left.reset();
    }
  }
}

void Reader::update_list() {
  Dict entries;
  for (const auto& [id, known] : known_) {
    if (known.was_read) entries.emplace_back(id, known.entry);
  }
  if (board_.list().update(Dict{{"version", 1},
                                {"found", known_.size()},
                                {"complete", is_complete_},
                                {"faults", List(faults_.begin(), faults_.end())},
                                {"experiments", std::move(entries)}}))
    board_.notify();
}

}  // namespace cadre::dashboard
