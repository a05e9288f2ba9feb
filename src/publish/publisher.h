// Publishes an experiment or a training run while it runs: its store as segments, and before each of them the files of
// all checkpoints that it lists; then its result files. What is published is at every moment a whole state of the past.
//
// Everything happens in threads of its own; what the controller calls returns at once. A storage that fails is tried
// again with growing pauses, for as long as it takes; meanwhile the experiment goes on, and the last published state
// stays.
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

#include "publish/lease.h"
#include "publish/manifest.h"
#include "publish/removal_lane.h"
#include "run/checkpoint_registry.h"
#include "storage/retry.h"
#include "storage/storage.h"
#include "store/segment.h"

namespace cadre::publish {

class Publisher {
 public:
  struct Setting {
    std::filesystem::path directory;  // the working directory, whose store exists
    storage::Uri uri;                 // where it is published
    std::shared_ptr<storage::Storage> storage;
    std::shared_ptr<Lease> lease;
    bool begins_anew = false;  // what is published counts no more: everything is published again
    std::chrono::duration<double> interval = std::chrono::seconds(5);  // of segments
    std::function<void()> wake = [] {};  // called in its threads when something is there to be taken
  };

  explicit Publisher(Setting setting);
  // What is not published stays so.
  ~Publisher();

  // A checkpoint's directory, by its path below the working directory, that the store no longer lists. True: it is
  // needed for what is being published now, and is removed by the publisher when that is done. False: the caller may
  // remove it.
  bool takes_over_removal(const std::string& directory);
  // What it is to remove, and has not yet.
  std::vector<std::string> removals() const;

  // Whether more was published since the last call. The caller then says what must stay on the local disk.
  bool has_published();
  // Removes the files of all other published checkpoints from the local disk, see storage/remote_directory.h.
  void keep_only(std::set<std::string> directories);
  // Returns when that is done.
  void finish_removals();

  // What a person should know, a line each.
  std::vector<std::string> take_messages();
  // Why nothing can be published any more; empty while that is not so.
  std::string lost() const;

  // At the end, when nothing changes any more: publishes what is left, and gives the lease back. Returns when all is
  // done, after `patience`, or when `give_up` says so, with what is not published, for people; empty when all is.
  std::string finish(std::chrono::duration<double> patience, const std::function<bool()>& give_up);

 private:
  using Clock = std::chrono::steady_clock;
  struct PublishedCheckpoint {
    std::string directory;
    std::int64_t generation = 1;
    Dict files = {};
    bool is_whole = false;   // there, and not only a part of it
    bool is_sealed = false;  // as the store knows it
    bool is_remote = false;  // its files are not on the local disk

    std::string place() const { return checkpoint_place(directory, generation); }
  };
  struct ResultFile {
    std::pair<std::uintmax_t, std::filesystem::file_time_type> stamp = {};  // of the local one that was uploaded
    std::optional<storage::Version> version = {};  // of the published one; empty: there is none
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
  void upload_result_files();
  void hold_removals();
  void settle_removals(std::set<std::string> needed);
  void tell_of(const std::string& fault, storage::StorageFault::Kind kind);
  void say(std::string message);
  void renew_lease();
  void thin_out();

  const Setting setting_;
  store::SegmentWriter writer_;
  RemovalLane removal_lane_;

  // Of the publishing thread.
  Manifest manifest_;
  std::int64_t next_number_;
  std::int64_t first_checkpoint_;  // id; those from it on are nobody else's
  bool is_first_ = true;           // of this session
  std::map<run::CheckpointId, PublishedCheckpoint> published_;
  std::set<std::string> objects_;
  std::map<std::string, ResultFile> result_files_;
  Clock::time_point result_files_due_ = {};
  storage::BackOff back_off_;

  // Of all threads.
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool holds_removals_ = false;  // which state is being published is not settled yet
  std::set<std::string> in_flight_;
  std::set<std::string> held_removals_;
  std::map<std::string, storage::Remote> evictable_;  // published and on the local disk: directory, what it becomes
  std::string being_evicted_;                         // one of them; empty: none
  std::optional<std::set<std::string>> to_keep_;
  bool thins_out_ = false;
  bool has_published_ = false;
  std::vector<std::string> messages_;
  std::string fault_;  // of the last attempt
  std::string lost_;
  bool finish_ = false;
  bool hurry_ = false;  // the next attempt is to be made at once
  bool finished_ = false;
  bool quit_ = false;
  std::atomic<bool> stop_ = false;  // uploads are given up

  std::thread publishing_;  // last: they use the rest
  std::thread renewing_;
  std::thread thinning_;
};

}  // namespace cadre::publish
