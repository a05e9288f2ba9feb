// An agent's own directory, in which its workers work where the node does not see the run's, with the same paths below
// it: what the controller sends for them, what it fetches of them, and what they print.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/temporary_folder.h"
#include "engine/cluster/carried_files.h"
#include "engine/cluster/messages.h"

namespace cadre::engine::cluster {

class AgentFiles {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  struct Send {
    std::function<void(const Piece&)> piece;
    std::function<void(const Printed&)> printed;
  };

  explicit AgentFiles(Send send) : send_(std::move(send)) { begin_anew(); }

  // Begins with an empty directory, for a new session. Without effect on files of workers that have not ended.
  void begin_anew();
  // Returns the directory, in the system's folder for temporary files; empty if it cannot be made.
  const std::filesystem::path& directory() const { return directory_; }

  // Faults of what they are about are told to the controller.
  void take(const Piece& piece);
  void fetch(const Fetch& fetch);
  void move(const Move& move);
  void drop(const Drop& drop);

  // Makes a worker's directory, if that is in this one, and sends what it prints there until it has ended. Returns why
  // it cannot be started; empty if it can.
  std::string begin(WorkerId worker, const WorkerSpec& spec);
  void end(WorkerId worker);

  // Sends one piece of what was fetched; returns false if there is none.
  bool send_more();
  // Sends what was printed, now and then.
  void look(TimePoint now);
  // Returns when to look again; empty: nobody works here.
  std::optional<TimePoint> next_look() const;

 private:
  // The part of a file that was sent.
  struct Sent {
    std::uint64_t bytes = 0;
    std::vector<std::byte> end = {};  // the last of them, which show that they are still there
  };
  struct Output {
    std::string directory = {};  // below this one
    std::map<std::string, Sent> sent = {};
  };

  static bool is_still_there(const Sent& sent, const base::ReadableFile& file, std::uint64_t size);
  void send_output(Output& output);
  bool is_usable(const std::string& place);

  Send send_;
  std::unique_ptr<base::TemporaryFolder> folder_ = {};
  std::filesystem::path directory_ = {};
  std::map<std::string, std::unique_ptr<FileReceiver>> receivers_ = {};
  std::set<std::string> broken_ = {};  // whose further pieces are of no use
  std::deque<FileSender> senders_ = {};
  std::map<WorkerId, Output> outputs_ = {};
  std::map<std::string, Sent> sent_ = {};  // of files of workers that have ended
  TimePoint looked_ = {};
};

}  // namespace cadre::engine::cluster
