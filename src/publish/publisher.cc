#include "publish/publisher.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/clock.h"
#include "base/directory.h"
#include "base/inner_path.h"
#include "base/json.h"
#include "base/seconds.h"
#include "checkpoint/checkpoint_files.h"
#include "publish/upload_directory.h"
#include "storage/remote_directory.h"
#include "storage/uploads.h"
#include "store/experiment_lock.h"
#include "store/object_files.h"
#include "store/read_store.h"
#include "store/run_directory.h"

namespace cadre::publish {
namespace fs = std::filesystem;
namespace {

using storage::StorageFault;
using storage::Unreadable;
using storage::Upload;

constexpr auto kResultFilesInterval = std::chrono::seconds(60);
constexpr const char* kSegmentFile = ".segment";  // in the working directory until it is uploaded

// Returns true for files beside a store that are no result files: of an experiment, or of a training run of a trial.
bool is_own_file(const std::string& name) {
  return name.starts_with('.') || name.starts_with(store::kStoreFileName) || name == store::kObjectsDirectory ||
         name == storage::kPublishedToFile;
}

// Appends the paths of regular files, relative to the root, except those in checkpoints. Passes over folders that
// cannot be listed, and adds why to `faults`; one may be removed meanwhile.
void list_result_files(const fs::path& root, const fs::path& below, std::vector<std::string>& files,
                       std::set<std::string>& faults) {
  if (checkpoint::is_committed(root / below)) return;  // a checkpoint may have any name
  const bool holds_store = store::has_store(root / below);
  for (const std::string& name : base::list_directory(root / below)) {
    if (checkpoint::is_name_of_checkpoint(name) || (holds_store && is_own_file(name))) continue;
    const fs::path path = below / name;
    std::error_code gone;
    const fs::file_status status = fs::symlink_status(root / path, gone);
    if (fs::is_regular_file(status)) files.push_back(path.string());
    if (!fs::is_directory(status)) continue;
    try {
      list_result_files(root, path, files, faults);
    } catch (const StorageError& error) {
      if (fs::exists(fs::symlink_status(root / path, gone))) faults.insert(error.what());
    }
  }
}

std::set<std::string> directories_of(const std::vector<store::CheckpointRow>& rows) {
  std::set<std::string> directories;
  for (const store::CheckpointRow& row : rows) directories.insert(row.directory);
  return directories;
}

// Returns "trial/checkpoint_000003" for "trial/checkpoint_000003/.metadata.json", a file that every checkpoint has,
// whatever its name, and for any file in a directory with a checkpoint name of any generation; empty if the file
// belongs to no checkpoint.
std::string checkpoint_of(const std::string& file) {
  for (std::size_t at = 0, slash = file.find('/'); slash != file.npos; at = slash + 1, slash = file.find('/', at)) {
    const std::string name = file.substr(at, slash - at);
    if (checkpoint::is_reporting_name(name)) return {};
    if (checkpoint::is_name_of_checkpoint(std::string(part_place(name).directory))) return file.substr(0, slash);
  }
  const fs::path path = file;
  return path.filename() == checkpoint::kMetadataName ? path.parent_path().string() : std::string();
}

// Returns the path in the storage to which a checkpoint is uploaded: no other one's of `published`, which the published
// state may list, so an earlier checkpoint with the same directory stays whole until a state without it is published.
template <class Published>
std::string place_of_upload(const store::CheckpointRow& row, std::int64_t generation, const Published& published) {
  std::string directory = row.directory;
  for (;;) {
    std::string place = checkpoint_place(directory, generation);
    const auto is_there = [&](const auto& entry) { return entry.first != row.id && entry.second.place == place; };
    if (std::ranges::none_of(published, is_there)) return place;
    directory += fmt::format("_{}", row.id);  // still a name of a checkpoint, if the directory's is one
  }
}

}  // namespace

std::set<std::string> published_names(storage::Storage& storage) {
  std::set<std::string> names;
  const auto is_in_another = [&](const std::string& name) {
    for (std::size_t at = name.find('/'); at != name.npos; at = name.find('/', at + 1)) {
      if (names.contains(name.substr(0, at))) return true;
    }
    return false;
  };
  for (const storage::StoredFile& file : storage.list("")) {
    if (std::string checkpoint = checkpoint_of(file.name); !checkpoint.empty()) {
      names.insert(std::move(checkpoint));
    } else if (generation_of_segment(file.name)) {
      names.insert(file.name);
    }
  }
  std::erase_if(names, is_in_another);  // a checkpoint may hold copies of others
  return names;
}

Publisher::Publisher(Setting setting)
    : setting_(std::move(setting)),
      writer_(setting_.directory),
      removal_lane_(setting_.storage),
      manifest_(setting_.lease->manifest()),
      next_number_(manifest_.segments.empty() ? 1 : manifest_.segments.back().number + 1),
      publishing_([this] { publish_again_and_again(); }),
      renewing_([this] { renew_lease(); }),
      thinning_([this] { thin_out(); }) {}

Publisher::~Publisher() {
  {
    const std::lock_guard lock(mutex_);
    quit_ = true;
  }
  stop_ = true;
  changed_.notify_all();
  publishing_.join();
  renewing_.join();
  thinning_.join();
}

// ---- The publishing thread

void Publisher::publish_again_and_again() {
  std::unique_lock lock(mutex_);
  const std::chrono::nanoseconds interval = base::to_nanoseconds(setting_.interval);
  for (auto due = Clock::now();;) {
    changed_.wait_until(lock, due, [this] { return quit_ || hurry_ || !lost_.empty(); });
    hurry_ = false;
    if (!lost_.empty()) {
      lock.unlock();
      return clear_away();
    }
    if (quit_) return;
    const bool last = finish_;
    const std::int64_t number = ++begun_;
    lock.unlock();
    const bool done = attempt(last);
    lock.lock();
    if (done) {
      published_up_to_ = number;
      lock.unlock();
      setting_.wake();
      lock.lock();
    }
    if (done && last) {
      finished_ = true;
      changed_.notify_all();
      return;
    }
    due = Clock::now() + (done ? interval : back_off_.next());
  }
}

// Publishes one state of the store and, if due, the changed result files. Returns false after a fault.
bool Publisher::attempt(bool last) {
  try {
    with_lease([&] {
      cycle();
      if (last) {
        remove_what_was_not_committed();
        setting_.storage->remove_unfinished();
      }
      if (last || Clock::now() >= result_files_due_) {
        upload_result_files();
        result_files_due_ = Clock::now() + kResultFilesInterval;
      }
      if (last) setting_.lease->verify();
    });
    back_off_.reset();
    const std::lock_guard lock(mutex_);
    if (!std::exchange(fault_, {}).empty())
      messages_.push_back(fmt::format("{} answers again; what had waited is published", shown(setting_.uri)));
    return true;
  } catch (const LeaseLost&) {  // NOLINT(bugprone-empty-catch): lost() says so, and nothing is tried again
  } catch (const StorageFault& fault) {
    tell_of(fault.what(), fault.kind());
  } catch (const Interrupted&) {  // NOLINT(bugprone-empty-catch): an upload was given up to stop
  } catch (const std::exception& error) {
    tell_of(error.what(), StorageFault::Kind::lasting);
  }
  settle_removals({});
  return false;
}

void Publisher::tell_of(const std::string& fault, StorageFault::Kind kind) {
  {
    const std::lock_guard lock(mutex_);
    const bool is_said = !fault_.empty();
    fault_ = fault;
    if (is_said) return;
  }
  using Kind = StorageFault::Kind;
  const char* const so = kind == Kind::denied ? "Nothing is published until the credentials are renewed"
                                              : "Nothing is published until that is over";
  say(fmt::format("Warning: {}. {}; it is tried again and again, at most a minute apart, and the experiment goes on",
                  fault, so));
}

void Publisher::say(std::string message) {
  {
    const std::lock_guard lock(mutex_);
    messages_.push_back(std::move(message));
  }
  setting_.wake();
}

void Publisher::cycle() {
  const Merge merge = is_first_ && setting_.begins_anew ? Merge{} : plan_merge(manifest_.segments);
  const std::int64_t number = next_number_++;
  const SegmentEntry before = merge.kept == 0 ? SegmentEntry() : manifest_.segments[merge.kept - 1];
  const store::SegmentWriter::Range range{.after = before.position,
                                          .after_number = before.number,
                                          .number = number,
                                          .replaces = merge.kept < manifest_.segments.size(),
                                          .whole_tables = is_first_};
  const fs::path file = setting_.directory / kSegmentFile;
  hold_removals();
  const auto segment = writer_.write(file, range);
  settle_removals(segment ? directories_of(segment->checkpoints) : std::set<std::string>());
  if (!segment) return;
  upload_checkpoints(segment->checkpoints);
  std::map<std::int64_t, std::string> manifests;
  store::Places places;
  for (const store::CheckpointRow& row : segment->checkpoints) {
    const PublishedCheckpoint& one = published_.at(row.id);
    if (!row.synced) manifests.emplace(row.id, base::to_json(one.files));
    if (one.has_own_place()) places.emplace(row.id, one.place);
  }
  store::set_manifests(file, manifests);
  store::set_places(file, places);
  upload_objects();
  publish_segment(file, *segment, merge);
  forget_all_but(segment->checkpoints);
  is_first_ = false;
  remove_what_is_left_over();
  settle_removals({});
  back_off_.reset();
  {
    const std::lock_guard lock(mutex_);
    has_published_ = true;
  }
  setting_.wake();
}

void Publisher::upload_checkpoints(const std::vector<store::CheckpointRow>& rows) {
  setting_.lease->require();
  const std::int64_t own = setting_.lease->generation();
  for (const store::CheckpointRow& row : rows) {
    if (const auto found = published_.find(row.id); found != published_.end() && found->second.is_whole) {
      found->second.is_sealed = row.synced;
      continue;
    }
    const fs::path directory = setting_.directory / row.directory;
    PublishedCheckpoint one{.directory = row.directory, .generation = own, .is_sealed = row.synced};
    {
      const std::lock_guard lock(mutex_);
      listed_.insert(row.directory);
    }
    if (auto remote = storage::remote_files(directory)) {  // published by an earlier session, or written there
      one.generation = part_place(remote->place).generation;
      one.place = remote->place_of(row.directory);
      one.files = row.synced ? std::move(remote->files) : checkpoint::seal_files(setting_.directory, row.directory);
      one.is_remote = true;
    } else {
      one.place = place_of_upload(row, own, published_);
      removal_lane_.claim(one.place);
      published_[row.id] = one;  // recorded before the upload, which may fail halfway
      one.files = upload_directory(*setting_.storage, directory, one.place, stop_);
    }
    one.is_whole = true;
    published_[row.id] = std::move(one);
  }
}

void Publisher::upload_objects() {
  if (setting_.is_work_place) return;  // they are where workers map them
  const fs::path directory = setting_.directory / store::kObjectsDirectory;
  std::error_code none;
  if (!fs::is_directory(directory, none)) return;
  std::vector<Upload> uploads;
  for (const std::string& name : base::list_directory(directory)) {
    const std::string whole = std::string(store::kObjectsDirectory) + "/" + name;
    if (name.ends_with(".tmp") || objects_.contains(whole)) continue;
    removal_lane_.claim(whole);
    uploads.push_back({directory / name, whole});
  }
  storage::upload_all(*setting_.storage, uploads, stop_, Unreadable::fail);
  for (const Upload& upload : uploads) objects_.insert(upload.name);
}

void Publisher::publish_segment(const fs::path& file, const store::SegmentWriter::Segment& segment,
                                const Merge& merge) {
  SegmentEntry entry{.number = next_number_ - 1,
                     .generation = setting_.lease->generation(),
                     .level = merge.level,
                     .position = segment.position};
  const std::string name = segment_name(entry);
  removal_lane_.claim(name);
  const storage::Contents contents = setting_.storage->upload({file, &stop_}, name);
  fs::remove(file);
  entry.bytes = contents.size;
  entry.xxh3 = storage::checksum_text(contents);

  Manifest next = manifest_;
  next.time = base::wall_seconds();
  std::vector<std::string> replaced;
  for (std::size_t i = merge.kept; i < next.segments.size(); ++i) replaced.push_back(segment_name(next.segments[i]));
  next.segments.resize(merge.kept);
  next.segments.push_back(std::move(entry));
  note_checkpoints(next, segment.checkpoints);
  setting_.lease->publish(next);
  manifest_ = std::move(next);
  writer_.keep();
  // No later manifest of any writer names them, because each writer starts from this manifest or a later one.
  for (std::string& old : replaced) removal_lane_.remove(std::move(old), RemovalLane::What::file);
}

// Notes of which generation the checkpoints are, and that all later ones are of this one.
void Publisher::note_checkpoints(Manifest& manifest, const std::vector<store::CheckpointRow>& rows) const {
  for (const store::CheckpointRow& row : rows)
    manifest.next_checkpoint = std::max(manifest.next_checkpoint, row.id + 1);
  manifest.generations.clear();
  const auto note = [&](std::int64_t id, std::int64_t generation) {
    if (manifest.generations.empty() || manifest.generations.back().number != generation)
      manifest.generations.push_back({.first_checkpoint = id, .number = generation});
  };
  for (const auto& [id, one] : published_) note(id, one.generation);  // includes some that are dropped after this
  note(manifest.next_checkpoint, setting_.lease->generation());
}

// Removes what this controller has uploaded and its successor does not list. A successor starts from the manifest
// only.
void Publisher::clear_away() noexcept {
  try {
    const std::int64_t own = setting_.lease->generation();
    const auto text = setting_.storage->read(kManifestFile);
    const Manifest theirs = text ? parse_manifest(*text, kManifestFile) : Manifest();
    if (theirs.generation <= own) return;
    for (const auto& [id, one] : published_) {
      if (one.generation == own && theirs.generation_of(id) != own) setting_.storage->remove_folder(one.place);
    }
    const SegmentEntry last{.number = next_number_ - 1, .generation = own};
    const auto is_last = [&](const SegmentEntry& entry) { return segment_name(entry) == segment_name(last); };
    if (std::ranges::none_of(theirs.segments, is_last)) setting_.storage->remove(segment_name(last));
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): the leftovers are harmless
  }
}

// Runs `act`. Records a lost lease in lost_ and rethrows.
template <class Act>
void Publisher::with_lease(const Act& act) {
  {
    const std::lock_guard lock(mutex_);
    if (!lost_.empty()) throw LeaseLost(lost_);
  }
  try {
    act();
  } catch (const LeaseLost& error) {
    {
      const std::lock_guard lock(mutex_);
      lost_ = error.what();
    }
    changed_.notify_all();
    setting_.wake();
    throw;
  }
}

// Drops all checkpoints that the published state does not list.
void Publisher::forget_all_but(const std::vector<store::CheckpointRow>& rows) {
  std::set<checkpoint::CheckpointId> listed;
  std::set<std::string> places;  // of a checkpoint and of a later one with the same name
  for (const store::CheckpointRow& row : rows) {
    listed.insert(row.id);
    if (const auto one = published_.find(row.id); one != published_.end()) places.insert(one->second.place);
  }
  std::map<std::string, storage::Remote> evictable;
  for (auto entry = published_.begin(); entry != published_.end();) {
    const PublishedCheckpoint& one = entry->second;
    if (!listed.contains(entry->first)) {
      if (!places.contains(one.place)) removal_lane_.remove(one.place, RemovalLane::What::folder);
      entry = published_.erase(entry);
      continue;
    }
    if (one.is_sealed && !one.is_remote)
      evictable.emplace(
          one.directory,
          storage::Remote{.files = one.files, .place = one.place == one.directory ? std::string() : one.place});
    ++entry;
  }
  std::set<std::string> left = directories_of(rows);
  const std::lock_guard lock(mutex_);
  listed_ = std::move(left);
  knows_listed_ = true;
  evictable_ = std::move(evictable);
}

// Removes leftovers of a killed controller: unpublished uploads and unfinished removals. Objects stay: they are named
// by their contents, so a later controller may write one of them again. Files of later generations stay as well: this
// controller may have been stopped since it published, and have a successor. A storage that does not list its files is
// asked again after the next state.
void Publisher::remove_what_is_left_over() {
  if (!may_have_leftovers_) return;
  try {
    remove_unlisted(setting_.leftovers ? *setting_.leftovers : published_names(*setting_.storage));
    may_have_leftovers_ = false;
  } catch (const StorageFault&) {  // NOLINT(bugprone-empty-catch): one that persists stops uploads, too
  }
}

// Removes what workers have written to the storage, and no report has said: they ended meanwhile.
void Publisher::remove_what_was_not_committed() {
  if (setting_.leftovers && !setting_.is_work_place) remove_unlisted(published_names(*setting_.storage));
}

void Publisher::remove_unlisted(const std::set<std::string>& names) {
  std::set<std::string> known;
  for (const auto& [id, one] : published_) known.insert(one.place);
  for (const SegmentEntry& entry : manifest_.segments) known.insert(segment_name(entry));
  const auto holds_known = [&](const std::string& name) {
    const auto below = known.lower_bound(name + "/");
    return below != known.end() && below->starts_with(name + "/");
  };
  const std::int64_t own = setting_.lease->generation();
  for (const std::string& name : names) {
    if (known.contains(name) || holds_known(name)) continue;
    const auto of_segment = generation_of_segment(name);
    if (of_segment.value_or(part_place(name).generation) <= own)
      removal_lane_.remove(name, of_segment ? RemovalLane::What::file : RemovalLane::What::folder);
  }
}

// Uploads each file on the condition that it is as this controller has left or found it, so that a successor's files
// are not overwritten. The lease is required after they were found: if it still holds then, no successor has written
// them. Uploads a few at a time, so that a fault of the storage does not lose the progress of earlier ones.
void Publisher::upload_result_files() {
  constexpr std::size_t kAtATime = 4;
  std::vector<std::string> names;
  std::set<std::string> faults;
  list_result_files(setting_.directory, {}, names, faults);
  for (const std::string& fault : faults) {
    if (!unlisted_folders_.contains(fault))
      say(fmt::format("Warning: the result files of a folder are not published: {}; make it readable", fault));
  }
  unlisted_folders_ = std::move(faults);
  std::ranges::sort(names);
  std::erase_if(result_files_, [&](const auto& entry) { return !std::ranges::binary_search(names, entry.first); });
  std::vector<Upload> uploads;
  std::vector<ResultFile> files;
  const auto upload = [&] {
    setting_.lease->require();
    const auto uploaded = storage::upload_all(*setting_.storage, uploads, stop_, Unreadable::skip);
    bool has_met_others = false;
    for (std::size_t i = 0; i < uploads.size(); ++i) {
      if (!uploaded[i]) continue;  // the file was replaced meanwhile: the next call uploads it
      files[i].version = uploaded[i]->version;
      const bool is_refused = uploads[i].expected && uploaded[i]->version.empty();
      has_met_others |= is_refused;
      is_refused ? void(result_files_.erase(uploads[i].name)) : void(result_files_[uploads[i].name] = files[i]);
    }
    uploads.clear();
    files.clear();
    back_off_.reset();  // a fault after a successful upload counts as a new one
    if (!has_met_others) return;
    setting_.lease->verify();
    throw StorageFault(StorageFault::Kind::passing, "a result file was written meanwhile by nobody who is known");
  };
  for (const std::string& name : names) {
    const fs::path path = setting_.directory / name;
    std::error_code gone;
    ResultFile file{.stamp = {fs::file_size(path, gone), fs::last_write_time(path, gone)}};
    if (gone) continue;
    Upload next{path, name};
    if (const auto before = result_files_.find(name); before != result_files_.end()) {
      if (before->second.stamp == file.stamp) continue;
      next.expected = before->second.version;
    } else if (setting_.lease->is_fenced()) {
      next.expected = setting_.storage->version_of(name);
    }
    if (!setting_.lease->is_fenced()) next.expected.reset();
    uploads.push_back(std::move(next));
    files.push_back(std::move(file));
    if (uploads.size() == kAtATime) upload();
  }
  upload();
}

// ---- The local disk

void Publisher::hold_removals() {
  const std::lock_guard lock(mutex_);
  holds_removals_ = true;
}

// Sets the directories that the current cycle needs, and removes the held ones that it does not need.
void Publisher::settle_removals(std::set<std::string> needed) {
  std::vector<std::string> free;
  {
    const std::lock_guard lock(mutex_);
    holds_removals_ = false;
    in_flight_ = std::move(needed);
    for (const std::string& directory : held_removals_) {
      if (!in_flight_.contains(directory) && being_evicted_ != directory) free.push_back(directory);
    }
  }
  for (const std::string& directory : free) {
    try {
      remove_from_storage_if_unlisted(directory);
      checkpoint::remove_directory(setting_.directory, {directory, "the list of what is to be removed"});
      const std::lock_guard lock(mutex_);
      held_removals_.erase(directory);
      evictable_.erase(directory);  // a state that was published meanwhile lists it
      failed_removals_.erase(directory);
    } catch (const std::exception& error) {
      if (failed_removals_.insert(directory).second)
        say(fmt::format("Warning: a checkpoint that nothing needs any more stays: {}; it is tried again and again",
                        error.what()));
    }
  }
}

// Removes what a worker has written to the storage and no manifest lists. What one lists is removed when another one
// follows, by forget_all_but() or remove_what_is_left_over().
void Publisher::remove_from_storage_if_unlisted(const std::string& directory) {
  const auto remote = setting_.leftovers ? storage::remote_files(setting_.directory / directory) : std::nullopt;
  if (!remote) return;
  std::string place = remote->place_of(directory);
  const auto is_it = [&](const auto& entry) { return entry.second.directory == directory; };
  if (!setting_.leftovers->contains(place) && std::ranges::none_of(published_, is_it))
    removal_lane_.remove(std::move(place), RemovalLane::What::folder);
}

bool Publisher::takes_over_removal(const std::string& directory) {
  std::error_code none;
  const bool is_stored_only = setting_.leftovers && !setting_.is_work_place &&
                              fs::exists(setting_.directory / directory / storage::kRemoteFile, none);
  const std::lock_guard lock(mutex_);
  evictable_.erase(directory);
  to_evict_.erase(directory);
  const bool may_be_listed = setting_.is_work_place && (!knows_listed_ || listed_.contains(directory));
  const bool is_needed = holds_removals_ || in_flight_.contains(directory) || being_evicted_ == directory;
  if (!is_needed && !may_be_listed && !is_stored_only) return false;
  held_removals_.insert(directory);
  return true;
}

std::vector<std::string> Publisher::removals() const {
  const std::lock_guard lock(mutex_);
  return {held_removals_.begin(), held_removals_.end()};
}

bool Publisher::has_published() {
  const std::lock_guard lock(mutex_);
  return std::exchange(has_published_, false);
}

void Publisher::keep_only(const std::set<std::string>& directories) {
  {
    const std::lock_guard lock(mutex_);
    to_evict_ = evictable_;
    std::erase_if(to_evict_, [&](const auto& entry) {
      return directories.contains(entry.first) || held_removals_.contains(entry.first);
    });
  }
  changed_.notify_all();
}

void Publisher::finish_removals() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return (to_evict_.empty() || !lost_.empty()) && being_evicted_.empty(); });
}

// Runs in its own thread, so that evictions follow keep_only() without delay. Stops when the lease is lost: a
// checkpoint that the successor drops may exist only here.
void Publisher::thin_out() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return quit_ || (!to_evict_.empty() && lost_.empty()); });
    if (quit_) return;
    const auto next = to_evict_.extract(to_evict_.begin());
    const std::string& directory = next.key();
    evictable_.erase(directory);
    being_evicted_ = directory;
    const fs::path path = setting_.directory / directory;
    lock.unlock();
    try {
      if (!storage::remote_files(path)) storage::replace_by_remote(path, next.mapped());
      failed_evictions_.erase(directory);
    } catch (const std::exception& error) {
      if (failed_evictions_.insert(directory).second)
        say(fmt::format(
            "Warning: a checkpoint that is published stays on the local disk: {}; it is tried again and again",
            error.what()));
    }
    lock.lock();
    being_evicted_.clear();
    changed_.notify_all();
  }
}

// ---- For the controller

std::vector<std::string> Publisher::take_messages() {
  const std::lock_guard lock(mutex_);
  return std::exchange(messages_, {});
}

std::string Publisher::lost() const {
  const std::lock_guard lock(mutex_);
  return lost_;
}

void Publisher::renew_lease() {
  std::unique_lock lock(mutex_);
  for (auto pause = Lease::period();;) {
    changed_.wait_for(lock, pause, [this] { return quit_ || finished_ || !lost_.empty(); });
    if (quit_ || finished_ || !lost_.empty()) return;
    lock.unlock();
    pause = Lease::period();
    try {
      with_lease([&] { setting_.lease->renew(); });
    } catch (const std::exception&) {  // the publishing thread reports the fault
      pause = Lease::period() / 10;
    }
    lock.lock();
  }
}

std::int64_t Publisher::publish_now() {
  const std::lock_guard lock(mutex_);
  hurry_ = true;
  changed_.notify_all();
  return begun_ + 1;
}

bool Publisher::is_published(std::int64_t number) const {
  const std::lock_guard lock(mutex_);
  return published_up_to_ >= number;
}

std::string Publisher::finish(std::chrono::duration<double> patience, const std::function<bool()>& give_up) {
  const auto until = Clock::now() + base::to_nanoseconds(patience);
  constexpr auto kLook = std::chrono::milliseconds(50);
  std::unique_lock lock(mutex_);
  finish_ = hurry_ = true;
  changed_.notify_all();
  const auto over = [&] { return Clock::now() >= until || !lost_.empty() || give_up(); };
  while (!finished_ && !over()) changed_.wait_for(lock, kLook);
  const bool published = finished_;
  const std::string fault = lost_.empty() ? fault_ : lost_;
  while (published && !removal_lane_.idle() && !over()) changed_.wait_for(lock, kLook);
  lock.unlock();
  if (published) {
    setting_.lease->release();
    return {};
  }
  stop_ = true;
  return fmt::format("{} does not have the end of it{}{}", shown(setting_.uri), fault.empty() ? "" : ": ", fault);
}

}  // namespace cadre::publish
