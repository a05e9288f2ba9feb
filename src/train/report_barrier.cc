#include "train/report_barrier.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace cadre::train {

void ReportBarrier::begin(std::int64_t attempt, std::int64_t world_size, std::chrono::nanoseconds patience) {
  attempt_ = attempt;
  patience_ = patience;
  members_.assign(static_cast<std::size_t>(world_size), Member{});
  deadline_.reset();
}

std::optional<Event> ReportBarrier::reported(Rank rank, channel::Report report, TimePoint now) {
  Member& member = members_.at(static_cast<std::size_t>(rank));
  ++member.reports;
  member.report = std::move(report);
  if (!deadline_) deadline_ = now + patience_;
  return look();
}

std::optional<Event> ReportBarrier::returned(Rank rank) {
  members_.at(static_cast<std::size_t>(rank)).returned = true;
  return look();
}

std::optional<Event> ReportBarrier::look() {
  const auto reports = [](const Member& member) { return member.report.has_value(); };
  if (std::ranges::all_of(members_, reports)) {
    GroupReported joined = join();
    deadline_.reset();
    return joined;
  }
  const auto waiting = std::ranges::find_if(members_, reports);
  const auto gone = std::ranges::find_if(members_, &Member::returned);
  if (waiting == members_.end() || gone == members_.end()) return std::nullopt;
  return GroupBroke{attempt_,
                    fmt::format("rank {} has returned after {} calls of report(), and rank {} calls it for "
                                "the {}. time: all ranks must call it equally often",
                                gone - members_.begin(), gone->reports, waiting - members_.begin(), waiting->reports)};
}

GroupReported ReportBarrier::join() {
  GroupReported joined{.attempt = attempt_,
                       .step = members_.front().report->step,
                       .metrics = std::move(members_.front().report->metrics)};
  for (Member& member : members_) {
    if (!member.report->checkpoint.empty()) joined.checkpoint.push_back(std::move(member.report->checkpoint));
  }
  return joined;
}

std::optional<Event> ReportBarrier::expire(TimePoint now) {
  if (!deadline_ || now < *deadline_) return std::nullopt;
  deadline_.reset();
  std::vector<Rank> missing;
  for (std::size_t rank = 0; rank < members_.size(); ++rank) {
    if (!members_[rank].report) missing.push_back(static_cast<Rank>(rank));
  }
  const std::string who = missing.size() == 1 ? fmt::format("rank {} has", missing.front())
                                              : fmt::format("the ranks {} have", fmt::join(missing, ", "));
  return GroupBroke{attempt_, fmt::format("{} not called report() for {:g} s, in which others have waited for it", who,
                                          std::chrono::duration<double>(patience_).count())};
}

std::vector<Rank> ReportBarrier::take_waiting() {
  std::vector<Rank> waiting;
  for (std::size_t rank = 0; rank < members_.size(); ++rank) {
    if (std::exchange(members_[rank].report, std::nullopt)) waiting.push_back(static_cast<Rank>(rank));
  }
  deadline_.reset();
  return waiting;
}

}  // namespace cadre::train
