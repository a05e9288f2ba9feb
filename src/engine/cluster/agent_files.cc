#include "engine/cluster/agent_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/directory.h"
#include "base/file.h"
#include "base/inner_path.h"
#include "base/machine.h"
#include "cadre/error.h"

namespace cadre::engine::cluster {
namespace fs = std::filesystem;
namespace {

constexpr auto kOutputPeriod = std::chrono::milliseconds(200);
constexpr const char* kPurpose = "cadre_node";
constexpr std::size_t kComparedBytes = 256;  // lines of a log may be alike, as those of a progress bar

}  // namespace

void AgentFiles::begin_anew() {
  receivers_.clear();
  broken_.clear();
  senders_.clear();
  outputs_.clear();
  sent_.clear();
  folder_.reset();
  directory_.clear();
  try {
    folder_ = std::make_unique<base::TemporaryFolder>(kPurpose);
    directory_ = folder_->path();
  } catch (const StorageError& error) {
    std::fprintf(stderr, "cadre: workers cannot work in a directory of this node: %s\n", error.what());
  }
}

bool AgentFiles::is_usable(const std::string& place) {
  const std::string fault = directory_.empty() ? "the node has no directory for it" : fault_of_place(place);
  if (!fault.empty()) send_.piece({.kind = Piece::Kind::fault, .place = place, .fault = fault});
  return fault.empty();
}

// ---- Files

void AgentFiles::take(const Piece& piece) {
  const bool is_last = piece.kind == Piece::Kind::end || piece.kind == Piece::Kind::fault;
  if (broken_.contains(piece.place)) {
    if (is_last) broken_.erase(piece.place);
    return;
  }
  if (!is_usable(piece.place)) {
    if (!is_last) broken_.insert(piece.place);
    return;
  }
  if (piece.kind == Piece::Kind::fault) {  // the controller knows it
    receivers_.erase(piece.place);
    return;
  }
  std::unique_ptr<FileReceiver>& receiver = receivers_[piece.place];
  if (receiver == nullptr) receiver = std::make_unique<FileReceiver>(directory_, piece.place);
  try {
    if (receiver->take(piece)) receivers_.erase(piece.place);
  } catch (const StorageError& error) {
    receivers_.erase(piece.place);
    if (!is_last) broken_.insert(piece.place);
    send_.piece({.kind = Piece::Kind::fault,
                 .place = piece.place,
                 .fault = fmt::format("node {}: {}", base::host_name(), error.what())});
  }
}

void AgentFiles::fetch(const Fetch& fetch) {
  if (is_usable(fetch.place)) senders_.emplace_back(fetch.place, directory_ / fetch.place);
}

void AgentFiles::move(const Move& move) {
  if (!is_usable(move.from) || !is_usable(move.to)) return;
  try {
    const base::InnerPath to(move.to, "the controller");
    base::remove_inside(directory_, to);
    if (!base::rename_inside(directory_, {move.from, "the controller"}, to))
      throw StorageError(fmt::format("{} is not there any more", move.from));
  } catch (const StorageError& error) {
    send_.piece({.kind = Piece::Kind::fault, .place = move.to, .fault = error.what()});
  }
}

void AgentFiles::drop(const Drop& drop) {
  if (!is_usable(drop.place)) return;
  const std::string below = drop.place + "/";
  const auto is_below = [&](const auto& entry) { return entry.first.starts_with(below); };
  const auto first = sent_.lower_bound(below);
  sent_.erase(first, std::find_if_not(first, sent_.end(), is_below));
  try {
    base::remove_inside(directory_, {drop.place, "the controller"});
  } catch (const StorageError& error) {  // it goes with the whole directory
    std::fprintf(stderr, "cadre: %s\n", error.what());
  }
}

bool AgentFiles::send_more() {
  if (senders_.empty()) return false;
  send_.piece(senders_.front().next());
  if (senders_.front().is_done()) senders_.pop_front();
  return true;
}

// ---- Workers

std::string AgentFiles::begin(WorkerId worker, const WorkerSpec& spec) {
  const fs::path inner = directory_.empty() ? fs::path() : spec.directory.lexically_relative(directory_);
  if (inner.empty() || inner.native().starts_with("..")) return "";
  try {
    base::make_directories(spec.directory);
    for (const std::string& place : spec.needs) base::info_of(directory_ / place);
  } catch (const StorageError& error) {
    return fmt::format("node {}: {}", base::host_name(), error.what());
  }
  Output& output = outputs_[worker];
  output.directory = inner.string();
  for (const char* name : output_files) output.sent[name] = sent_[(inner / name).string()];
  return "";
}

void AgentFiles::end(WorkerId worker) {
  const auto found = outputs_.find(worker);
  if (found == outputs_.end()) return;
  send_output(found->second);
  for (auto& [name, sent] : found->second.sent)
    sent_[(fs::path(found->second.directory) / name).string()] = std::move(sent);
  outputs_.erase(found);
}

void AgentFiles::look(TimePoint now) {
  if (outputs_.empty() || now - looked_ < kOutputPeriod) return;
  looked_ = now;
  for (auto& [worker, output] : outputs_) send_output(output);
}

std::optional<AgentFiles::TimePoint> AgentFiles::next_look() const {
  if (outputs_.empty()) return std::nullopt;
  return looked_ + kOutputPeriod;
}

// A file was emptied, or cut to its newest lines, if it is shorter than what was sent, or has other bytes there by now.
bool AgentFiles::is_still_there(const Sent& sent, const base::ReadableFile& file, std::uint64_t size) {
  if (size < sent.bytes) return false;
  std::vector<std::byte> end(sent.end.size());
  return file.read(sent.bytes - end.size(), end) == end.size() && end == sent.end;
}

void AgentFiles::send_output(Output& output) {
  for (auto& [name, sent] : output.sent) {
    const std::string file = (fs::path(output.directory) / name).string();
    try {
      const auto opened = base::ReadableFile::open(directory_ / file, base::ReadableFile::Links::refuse);
      if (!opened) continue;
      const std::uint64_t size = opened->size();  // what is printed meanwhile is sent the next time
      bool begins_anew = !is_still_there(sent, *opened, size);
      if (begins_anew) sent = {};
      if (begins_anew && size == 0) send_.printed({.file = file, .begins_anew = true});
      std::vector<std::byte> buffer(std::min<std::uint64_t>(piece_bytes, size - sent.bytes));
      while (sent.bytes < size) {
        const std::size_t wanted = std::min<std::uint64_t>(buffer.size(), size - sent.bytes);
        const auto read = std::span(buffer).first(opened->read(sent.bytes, std::span(buffer).first(wanted)));
        if (read.empty()) break;  // it was cut meanwhile
        send_.printed({.file = file, .begins_anew = std::exchange(begins_anew, false), .bytes = read});
        sent.bytes += read.size();
        sent.end.insert(sent.end.end(), read.begin(), read.end());
        if (sent.end.size() > kComparedBytes)
          sent.end.erase(sent.end.begin(), sent.end.end() - static_cast<std::ptrdiff_t>(kComparedBytes));
      }
    } catch (const StorageError&) {  // NOLINT(bugprone-empty-catch): it is read again the next time
    }
  }
}

}  // namespace cadre::engine::cluster
