#include "train/node_files.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <system_error>
#include <utility>

#include "cadre/error.h"
#include "checkpoint/checkpoint_files.h"
#include "storage/remote_directory.h"

namespace cadre::train {

bool NodeFiles::fetch(const UploadCheckpoint& upload) {
  bool is_any_on_node = false;
  bool is_any_awaited = false;
  for (const CheckpointPart& part : upload.parts) {
    if (!part.node) continue;
    is_any_on_node = true;
    const OnNode place(*part.node, part.path);
    const auto there = here_.find(place);
    if (there != here_.end() && there->second.number == upload.number) continue;
    is_any_awaited = true;
    const std::string copy = checkpoint::copy_name(upload.number, part.rank);
    coming_[place] = {upload.number, copy};
    engine_.fetch(*part.node, part.path, copy);
  }
  if (is_any_on_node && !is_any_awaited) {
    to_download_again_.insert(upload.number);
    engine_.wake();
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
  const std::size_t stored = stored_parts(number).size();
  const auto parts = static_cast<std::size_t>(std::ranges::count_if(here_, is_of_it));
  if (stored == 0 || stored == parts) return CheckpointUploaded{number};
  // Some nodes reach the storage, and others do not: what is merged is here.
  if (std::optional<UploadFailed> failed = download(number)) return *std::move(failed);
  return std::nullopt;
}

// Begins to download the files of stored parts. Returns why it cannot.
std::optional<UploadFailed> NodeFiles::download(CheckpointNumber number) {
  const auto fetch_all = [this, number, stored = stored_parts(number)] {
    std::optional<UploadFailed> failed;
    try {
      for (const std::filesystem::path& part : stored) storage::fetch(part);
    } catch (const OutOfSpace& error) {
      failed = UploadFailed{number, error.what(), base::TryAgain::when_there_is_space};
    } catch (const std::exception& error) {
      failed = UploadFailed{number, error.what(), base::TryAgain::never};
    }
    engine_.wake();
    return failed;
  };
  try {
    downloads_.insert_or_assign(number, std::async(std::launch::async, fetch_all));
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
  for (const CheckpointNumber number : std::exchange(to_download_again_, {})) {
    if (const std::optional<UploadFailed> failed = download(number)) events.emplace_back(*failed);
  }
  for (auto one = downloads_.begin(); one != downloads_.end();) {
    if (one->second.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
      ++one;
      continue;
    }
    auto [number, ended] = std::pair(one->first, std::move(one->second));
    one = downloads_.erase(one);
    const std::optional<UploadFailed> failed = ended.get();
    if (failed && failed->again == base::TryAgain::never) forget(number);
    failed ? events.emplace_back(*failed) : events.emplace_back(CheckpointUploaded{number});
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
