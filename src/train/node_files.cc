#include "train/node_files.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <system_error>

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
  std::vector<std::filesystem::path> stored = stored_parts(number);
  const auto parts = std::ranges::count_if(here_, is_of_it);
  if (stored.empty() || std::ssize(stored) == parts) return CheckpointUploaded{number};
  // Some nodes reach the storage, and others do not: what is merged is here.
  const auto download = [this, stored = std::move(stored)] {
    std::string fault;
    try {
      for (const std::filesystem::path& part : stored) storage::fetch(part);
    } catch (const std::exception& error) {
      fault = error.what();
    }
    engine_.wake();
    return fault;
  };
  try {
    downloads_.insert_or_assign(number, std::async(std::launch::async, download));
  } catch (const std::system_error& error) {
    forget(number);
    return UploadFailed{number, std::string("no thread can be started: ") + error.what(), base::TryAgain::never};
  }
  return std::nullopt;
}

// Returns the parts of a checkpoint whose lists are here, and not their files.
std::vector<std::filesystem::path> NodeFiles::stored_parts(CheckpointNumber number) const {
  std::vector<std::filesystem::path> stored;
  for (const auto& [place, part] : here_) {
    if (part.number == number && storage::remote_files(directory_ / part.copy))
      stored.push_back(directory_ / part.copy);
  }
  return stored;
}

std::vector<Event> NodeFiles::look() {
  std::vector<Event> events;
  for (auto one = downloads_.begin(); one != downloads_.end();) {
    if (one->second.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
      ++one;
      continue;
    }
    auto [number, download] = std::pair(one->first, std::move(one->second));
    one = downloads_.erase(one);
    const std::string fault = download.get();
    if (!fault.empty()) forget(number);
    fault.empty() ? events.emplace_back(CheckpointUploaded{number})
                  : events.emplace_back(UploadFailed{number, fault, base::TryAgain::never});
  }
  return events;
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

}  // namespace cadre::train
