// Publishes an experiment or a training run while it runs: its store as segments, before each segment the files of all
// checkpoints that the segment lists, then the result files. The published state is always one complete earlier state.
//
// All work happens in the publisher's own threads; functions that the controller calls during the run return at once.
// If the storage fails, the publisher retries without limit, with growing pauses; meanwhile the experiment continues
// and the last published state stays.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "checkpoint/checkpoint_registry.h"
#include "publish/lease.h"
#include "publish/manifest.h"
#include "publish/removal_lane.h"
#include "storage/retry.h"
#include "storage/storage.h"
#include "store/segment.h"

namespace cadre::publish {

// Returns the checkpoints and segments in a storage, each as one name. Leaves out directories that workers have not
// reported yet, which are not published.
std::set<std::string> published_names(storage::Storage& storage);

class Publisher {
 public:
  struct Setting {
    std::filesystem::path directory;  // the working directory; contains a store
    storage::Uri uri;                 // where it is published
    std::shared_ptr<storage::Storage> storage;
    std::shared_ptr<Lease> lease;
    bool begins_anew = false;  // true: ignore what is published and publish everything again
    // Set if workers write checkpoints to where they are published: the published_names() from before the first one
    // started. Only what is among them can be left over by an earlier controller.
    std::optional<std::set<std::string>> leftovers = {};
    // True if they also work there: they map objects there, and the caller of takes_over_removal() removes from there
    // what it is left with.
    bool is_work_place = false;
    std::chrono::duration<double> interval = std::chrono::seconds(5);  // between segments
    std::function<void()> wake = [] {};  // called from its threads when messages or results are ready
  };

  explicit Publisher(Setting setting);
  // Stops without publishing the rest.
  ~Publisher();

  // Reports that the store no longer lists a checkpoint directory (path relative to the working directory). Returns
  // true if the state being published may still need it, a published one what a worker wrote to the storage, or if its
  // files are in the storage only: the publisher removes it afterwards. Returns false if the caller may remove it now.
  bool takes_over_removal(const std::string& directory);
  // Returns the directories that the publisher has still to remove.
  std::vector<std::string> removals() const;

  // Publishes the present state as soon as possible. Returns the number by which is_published() knows it.
  std::int64_t publish_now();
  bool is_published(std::int64_t number) const;

  // Returns true if more was published since the last call. The caller then calls keep_only().
  bool has_published();
  // Removes the files of all other published checkpoints from the local disk in the background, see
  // storage/remote_directory.h.
  void keep_only(const std::set<std::string>& directories);
  // Waits until these removals are done.
  void finish_removals();

  // Returns and clears the messages for the user, one line each.
  std::vector<std::string> take_messages();
  // Returns the reason why nothing can be published any more; empty while publishing is possible.
  std::string lost() const;

  // Publishes the rest and releases the lease; call at the end, when nothing changes any more. Returns when all is
  // done, after `patience`, or when `give_up` returns true. Returns a message about the unpublished rest; empty if all
  // is published.
  std::string finish(std::chrono::duration<double> patience, const std::function<bool()>& give_up);

 private:
  using Clock = std::chrono::steady_clock;
  struct PublishedCheckpoint {
    std::string directory;
    std::int64_t generation = 1;
    std::string place = {};  // its path in the storage
    Dict files = {};
    bool is_whole = false;   // true if it is uploaded completely
    bool is_sealed = false;  // true if the store lists it as synced
    bool is_remote = false;  // true if its files are not on the local disk

    bool has_own_place() const { return place != checkpoint_place(directory, generation); }
  };
  struct ResultFile {
    std::pair<std::uintmax_t, std::filesystem::file_time_type> stamp = {};  // of the local file as uploaded
    std::optional<storage::Version> version = {};  // of the published file; empty: not published
  };

  void publish_again_and_again();
  bool attempt(bool last);
  void cycle();
  void upload_checkpoints(const std::vector<store::CheckpointRow>& rows);
  void upload_objects();
  void publish_segment(const std::filesystem::path& file, const store::SegmentWriter::Segment& segment,
                       const Merge& merge);
  void clear_away() noexcept;
  template <class Act>
  void with_lease(const Act& act);
  void note_checkpoints(Manifest& manifest, const std::vector<store::CheckpointRow>& rows) const;
  void forget_all_but(const std::vector<store::CheckpointRow>& rows);
  void remove_what_is_left_over();
  void remove_what_was_not_committed();
  void remove_unlisted(const std::set<std::string>& names);
  void upload_result_files();
  void hold_removals();
  void settle_removals(std::set<std::string> needed);
  void remove_from_storage_if_unlisted(const std::string& directory);
  void tell_of(const std::string& fault, storage::StorageFault::Kind kind);
  void say(std::string message);
  void renew_lease();
  void thin_out();

  const Setting setting_;
  store::SegmentWriter writer_;
  RemovalLane removal_lane_;

  // Used by the publishing thread only.
  Manifest manifest_;
  std::int64_t next_number_;
  bool is_first_ = true;            // true until the first segment of this session is published
  bool may_have_leftovers_ = true;  // true until what an earlier controller has left over was found and is removed
  std::map<checkpoint::CheckpointId, PublishedCheckpoint> published_;
  std::set<std::string> objects_;
  std::map<std::string, ResultFile> result_files_;
  std::set<std::string> unlisted_folders_;  // why folders cannot be listed, of which the user knows
  Clock::time_point result_files_due_ = {};
  storage::BackOff back_off_;
  std::set<std::string> failed_removals_;  // those of held_removals_ of which the user knows that they have failed

  // Used by the thread of thin_out() only: the directories of which the user knows that they stay.
  std::set<std::string> failed_evictions_;

  // Shared by all threads, guarded by mutex_.
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool holds_removals_ = false;  // true while the state to be published is undetermined
  std::set<std::string> in_flight_;
  std::set<std::string> listed_;  // directories of published_, which the published state may list
  bool knows_listed_ = false;     // false: the published state is an earlier controller's
  std::set<std::string> held_removals_;
  std::map<std::string, storage::Remote> evictable_;  // published and still local: directory -> its remote form
  std::map<std::string, storage::Remote> to_evict_;   // those of them that the last keep_only() did not keep
  std::string being_evicted_;                         // a directory; empty: none
  bool has_published_ = false;
  std::vector<std::string> messages_;
  std::string fault_;  // of the last attempt; empty: it succeeded
  std::string lost_;
  bool finish_ = false;
  bool hurry_ = false;                // true: make the next attempt at once
  std::int64_t begun_ = 0;            // attempts to publish
  std::int64_t published_up_to_ = 0;  // the last of them that has succeeded
  bool finished_ = false;
  bool quit_ = false;
  std::atomic<bool> stop_ = false;  // true: abort uploads

  std::thread publishing_;  // last members: the threads use the others
  std::thread renewing_;
  std::thread thinning_;
};

}  // namespace cadre::publish
