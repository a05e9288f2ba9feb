#include "control/shell.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <iterator>

#include "storage/remote_directory.h"
#include "storage/retry.h"

namespace cadre::control {
namespace fs = std::filesystem;
namespace {

constexpr auto kPauseOnFullDisk = std::chrono::seconds(1);
constexpr auto kPatienceAtBeginning = std::chrono::seconds(10);  // for a storage that does not answer

std::string capitalized(std::string text) {
  text.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(text.front())));
  return text;
}

}  // namespace

Shell::Shell(Setting setting, store::ExperimentStore& store, engine::Engine& engine)
    : setting_(std::move(setting)),
      work_place_(setting_.directory, setting_.publication, engine),
      store_(store),
      engine_(engine),
      clock_(engine),
      interrupts_(engine),
      file_worker_(setting_.directory, work_place_.shared(), [&engine] { engine.wake(); }),
      publishing_({.directory = setting_.directory,
                   .config = setting_.publish_config,
                   .publication = setting_.publication,
                   .wake = [&engine] { engine.wake(); },
                   .say = [this](const std::string& text) { say(text); }}) {}

void Shell::prepare_work_place() {
  if (engine_.carries_files()) {
    say(fmt::format("Files go over the connections of the nodes' agents: {}", engine_.blind_nodes()));
    let_nodes_store();
  }
  if (!work_place_.is_shared()) return;
  publishing_.find_leftovers(true);
  patiently([&] { work_place_.prepare(store_); });
}

// Without the storage files go over connections.
void Shell::let_nodes_store() {
  std::map<std::string, std::string> without;
  std::string where;
  try {
    storage::with_patience(kPatienceAtBeginning, [&] {
      std::optional<engine::RunStorage> storage = work_place_.storage_for_nodes();
      if (!storage) return;
      publishing_.find_leftovers(false);
      where = shown(storage->uri);
      without = engine_.use_storage(*std::move(storage));
    });
  } catch (const storage::StorageFault& fault) {
    return warn(fmt::format("nodes do not store checkpoints themselves, because the storage cannot be listed: {}",
                            fault.what()));
  }
  if (where.empty()) return;
  std::string reasons;
  for (const auto& [node, reason] : without) reasons += fmt::format("; {} does not reach it: {}", node, reason);
  const bool is_reached_by_any = std::ranges::any_of(
      engine_.nodes(), [this](const engine::Node& node) { return engine_.reaches_storage(node.id); });
  say(is_reached_by_any
          ? fmt::format("Nodes store checkpoints at {} themselves, and load them from there{}", where, reasons)
          : fmt::format("No node stores checkpoints at {} itself{}", where, reasons));
}

void Shell::continue_from(const Recovered& recovered) {
  last_event_ = recovered.last_event;
  for (const auto& [id, directory] : recovered.unsealed_checkpoints) file_worker_.seal(id, directory);
  for (const std::filesystem::path& directory : recovered.to_remove) file_worker_.remove(directory);
  found_sealed_ = recovered.sealed_checkpoints;
  for (const std::string& note : recovered.notes) say(note);
}

void Shell::act_patiently(const std::function<void()>& act) const {
  for (bool is_said = false;; is_said = true) {
    try {
      act();
      if (is_said) say(fmt::format("There is space again; the {} goes on.", setting_.tenant.what));
      return;
    } catch (const OutOfSpace& error) {
      if (interrupts_.signal() != 0) throw;
      if (!is_said)
        setting_.print(fmt::format("The disk is full: {}. {} wait in report() until there is space.", error.what(),
                                   capitalized(setting_.tenant.workers)),
                       true);
      engine::Interrupts::sleep(kPauseOnFullDisk);
    }
  }
}

std::vector<std::string> Shell::needs_of(const std::string& checkpoint) const {
  std::vector<std::string> needs;
  patiently([&] { needs = work_place_.needs(checkpoint); });
  return needs;
}

void Shell::resumably(const std::function<void()>& act) const {
  const auto resumable = [this](const char* reason) {
    return fmt::format("the {} is interrupted: {}. Continue it with {} from {}", setting_.tenant.what, reason,
                       setting_.tenant.restore, directory().string());
  };
  try {
    act();
  } catch (const EngineError& error) {
    throw EngineError(resumable(error.what()));
  } catch (const OutOfSpace& error) {
    throw OutOfSpace(resumable(error.what()));
  } catch (const StorageError& error) {
    throw StorageError(resumable(error.what()));
  } catch (const fs::filesystem_error& error) {
    throw StorageError(resumable(error.what()));
  }
}

bool Shell::takes_interrupt() {
  if (told_of_interrupt_) return false;
  const int signal = interrupts_.signal();
  const std::string closing = signal == 0 ? engine_.closing() : "";
  if (signal == 0 && closing.empty()) return false;
  told_of_interrupt_ = true;
  if (signal == 0) interrupts_.request(SIGTERM);
  say(signal == 0
          ? fmt::format("Interrupted, because {}: {} stop at their next report; what was reported is saved.", closing,
                        setting_.tenant.workers)
          : fmt::format("Interrupted by SIG{}: {} stop at their next report. Once more ends them at once; what was "
                        "reported is saved either way.",
                        ::sigabbrev_np(signal), setting_.tenant.workers));
  return true;
}

std::vector<checkpoint::CheckpointId> Shell::take_sealed() {
  std::map<checkpoint::CheckpointId, Dict> sealed = std::exchange(found_sealed_, {});
  for (auto& [id, files] : file_worker_.take_sealed()) sealed[id] = std::move(files);
  std::vector<checkpoint::CheckpointId> checkpoints;
  for (auto& [id, files] : sealed) {
    checkpoints.push_back(id);
    sealed_[id] = std::move(files);
  }
  return checkpoints;
}

void Shell::discard(fs::path directory) {
  std::error_code unusable;
  const bool is_stored = fs::exists(path_of(directory / storage::kRemoteFile), unusable);
  if (!is_stored || !publishing_.takes_over_removal(directory)) file_worker_.remove(std::move(directory));
}

void Shell::delete_after_sync(checkpoint::CheckpointId id, fs::path directory) {
  to_delete_.emplace_back(id, std::move(directory));
}

void Shell::sync() {
  patiently([&] { store_.sync(); });
  for (auto& [id, directory] : std::exchange(to_delete_, {})) {
    if (publishing_.takes_over_removal(directory)) {
      file_worker_.forget(id);
    } else {
      file_worker_.remove(id, std::move(directory));
    }
  }
}

std::vector<std::string> Shell::pending_deletions() const {
  std::vector<std::string> pending;
  for (const auto& [id, directory] : to_delete_) pending.push_back(directory);
  std::ranges::copy(file_worker_.deletions(), std::back_inserter(pending));
  std::ranges::copy(publishing_.removals(), std::back_inserter(pending));
  return pending;
}

void Shell::finish_publishing(std::set<std::string> checkpoints_to_keep) {
  const int signal = interrupts_.signal();
  publishing_.finish([&] { return interrupts_.signal() != signal; }, std::move(checkpoints_to_keep));
}

}  // namespace cadre::control
