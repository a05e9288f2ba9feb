#include "train/report_barrier.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace cadre::train {
namespace {

// Returns why the parts cannot become one directory; empty: they can.
std::string fault_of(const std::vector<CheckpointPart>& parts) {
  const CheckpointPart* in_place = nullptr;
  for (const CheckpointPart& part : parts) {
    if (is_merged(part) != is_merged(parts.front()))
      return fmt::format(
          "the checkpoint of rank {} is to be uploaded, and that of rank {} lies where it is to be: all "
          "ranks must report theirs in one way",
          is_merged(part) ? part.rank : parts.front().rank, is_merged(part) ? parts.front().rank : part.rank);
    if (part.kind != CheckpointPart::Kind::in_place) continue;
    if (in_place != nullptr && in_place->path != part.path)
      return fmt::format("rank {} reports the checkpoint {}, and rank {} {}: all ranks must name one directory",
                         in_place->rank, in_place->path, part.rank, part.path);
    in_place = &part;
  }
  return {};
}

}  // namespace

void ReportBarrier::begin(std::int64_t attempt, std::int64_t world_size, std::chrono::nanoseconds patience) {
  attempt_ = attempt;
  patience_ = patience;
  members_.assign(static_cast<std::size_t>(world_size), Member{});
  deadline_.reset();
}

std::optional<Event> ReportBarrier::reported(Rank rank, RankReport report, TimePoint now) {
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
    deadline_.reset();
    return join();
  }
  const auto waiting = std::ranges::find_if(members_, reports);
  const auto gone = std::ranges::find_if(members_, &Member::returned);
  if (waiting == members_.end() || gone == members_.end()) return std::nullopt;
  return GroupBroke{attempt_,
                    fmt::format("rank {} has returned after {} calls of report(), and rank {} calls it for "
                                "the {}. time: all ranks must call it equally often",
                                gone - members_.begin(), gone->reports, waiting - members_.begin(), waiting->reports)};
}

Event ReportBarrier::join() {
  RankReport& first = *members_.front().report;
  GroupCheckpoint checkpoint{.waits = false, .directory = std::move(first.said.directory)};
  std::vector<Metrics> rank_metrics;
  for (Member& member : members_) {
    rank_metrics.push_back(member.report->metrics);
    PartReport& said = member.report->said;
    if (!said.part) continue;
    checkpoint.waits |= said.waits;
    checkpoint.until_published |= said.until_published;
    if (checkpoint.parts.empty()) checkpoint.validation = std::move(said.validation);
    if (!is_merged(*said.part) && checkpoint.directory.empty()) checkpoint.directory = std::move(said.directory);
    checkpoint.parts.push_back(*std::move(said.part));
  }
  if (std::string fault = fault_of(checkpoint.parts); !fault.empty()) return GroupBroke{attempt_, std::move(fault)};
  return GroupReported{attempt_, first.step, std::move(first.metrics), std::move(checkpoint), std::move(rank_metrics)};
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
