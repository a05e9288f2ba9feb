#include "train/node_files.h"

#include <algorithm>
#include <chrono>

#include "cadre/error.h"
#include "checkpoint/checkpoint_files.h"
#include "storage/remote_directory.h"

namespace cadre::train {

bool NodeFiles::fetch(const UploadCheckpoint& upload) {
  bool is_any_on_node = false;
  for (const CheckpointPart& part : upload.parts) {
    if (!part.node) continue;
    is_any_on_node = true;
    const std::string copy = checkpoint::copy_name(upload.number, part.rank);
    coming_[{*part.node, part.path}] = {upload.number, copy};
    engine_.fetch(*part.node, part.path, copy);
  }
  return is_any_on_node;
}

std::optional<Event> NodeFiles::arrived(const engine::Fetched& fetched) {
  auto part = coming_.extract({fetched.node, fetched.from});
  if (!part) {  // another part could not be had
    if (fetched.fault.empty()) engine_.keep_fetched(fetched.node, fetched.from, "");
    return std::nullopt;
  }
  const CheckpointNumber number = part.mapped().number;
  if (!fetched.fault.empty()) {
    forget(number);
    return UploadFailed{number, fetched.fault, base::TryAgain::never};
  }
  here_.insert(std::move(part));
  const auto is_of_it = [&](const auto& entry) { return entry.second.number == number; };
  if (std::ranges::any_of(coming_, is_of_it)) return std::nullopt;
  return CheckpointUploaded{number};
}

void NodeFiles::forget(CheckpointNumber number) {
  const auto is_of_it = [&](const auto& entry) { return entry.second.number == number; };
  for (const auto& [place, part] : here_) {
    if (part.number == number) engine_.keep_fetched(place.first, place.second, "");
  }
  std::erase_if(here_, is_of_it);
  std::erase_if(coming_, is_of_it);
}

void NodeFiles::committed(const CommitCheckpoint& commit) {
  const bool is_whole = commit.from.size() == 1;
  for (const std::string& copy : commit.from) {
    const auto part = std::ranges::find(here_, copy, [](const auto& entry) { return entry.second.copy; });
    if (part == here_.end()) continue;
    const auto& [node, from] = part->first;
    engine_.keep_fetched(node, from, is_whole ? commit.directory : "");
    here_.erase(part);
  }
}

void NodeFiles::bring(channel::Caller caller, const std::string& checkpoint) {
  wanted_.push_back({caller, checkpoint});
  look();
}

void NodeFiles::look() {
  while (!wanted_.empty()) {
    const auto [caller, checkpoint] = wanted_.front();
    if (!download_.valid()) {
      download_ = std::async(std::launch::async, [this, path = directory_ / checkpoint] {
        std::string fault;
        try {
          storage::fetch(path);
        } catch (const Error& error) {
          fault = error.what();
        }
        engine_.wake();
        return fault;
      });
    }
    if (download_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return;
    wanted_.pop_front();
    const std::string fault = download_.get();
    if (fault.empty()) engine_.bring(caller.worker, {checkpoint});
    engine_.reply(caller.worker, channel::Reply{.error = fault, .call = caller.call});
  }
}

}  // namespace cadre::train
