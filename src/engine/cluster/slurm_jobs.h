// Nodes that Slurm's queue gives: an agent is a job. Jobs live on when this process ends.
#pragma once

#include <map>
#include <memory>
#include <set>

#include "engine/cluster/command.h"
#include "engine/cluster/slurm.h"

namespace cadre::engine::cluster {

// An array with a job for each node of a request; one job for all nodes of an all_or_none request, which are given back
// together. What Slurm does is asked every 5 s while something waits, else every 30 s, for all jobs
// at once; with that comes when they reach their time limits.
class SlurmJobs final : public Provider {
 public:
  // `experiment` names the jobs; `own` is the environment of this process. Asks sbatch for its version, which takes
  // milliseconds. Throws EngineError if there is no Slurm, or one that is too old.
  SlurmJobs(std::string experiment, slurm::Variables own);

  void request(const NodeRequest& request, const AgentStart& start) override;
  void release(std::uint64_t request) override;
  void release(std::uint64_t request, std::int64_t ordinal) override;
  void claim(const std::vector<KeptRequest>& requests, const std::vector<NodeProcess>& processes) override;
  bool is_giving_back() const override;
  void look_soon() override;
  std::vector<ProviderEvent> take_events() override;
  std::optional<std::chrono::steady_clock::time_point> next_look() const override;
  std::vector<int> fds() const override;

 private:
  using TimePoint = std::chrono::steady_clock::time_point;
  using Clock = std::chrono::steady_clock;

  // When a job that runs ends.
  struct Limit {
    double seen = 0;                     // when it was listed first, in seconds since 1970
    std::optional<TimePoint> told = {};  // the last NodeEnds event
  };
  struct Request {
    NodeRequest asked = {};
    AgentStart start = {};
    bool is_submitted = false;
    bool is_seen = false;       // in a list
    bool may_be_there = false;  // a submission failed in a way that does not say: the list is looked at first
    std::unique_ptr<Command> submission = {};
    std::int64_t failures = 0;  // in a row
    TimePoint next = {};        // for its submission
    TimePoint submitted = {};
    bool is_released = false;
    TimePoint released_at = {};
    bool is_release_listed = false;  // a list from after that was looked at
    std::set<std::int64_t> released = {};
    std::set<std::int64_t> ended = {};
    std::string told = {};  // the last Queued event
    std::map<std::int64_t, Limit> limits = {};
  };
  // A command that runs now and then, one at a time.
  struct Errand {
    std::unique_ptr<Command> command = {};
    TimePoint started = {};
    TimePoint next = TimePoint::max();
    std::int64_t failures = 0;
  };

  // Starts a command that is killed if it takes too long.
  std::unique_ptr<Command> run(slurm::Words words, std::string input, slurm::Variables added) const;

  void submit(std::uint64_t id, Request& request);
  void look_at_submission(Request& request);
  void try_again(Request& request, const std::string& why);
  void start_errands();
  void look_at_list();
  void look_at_cancellation();
  void cancel_others(const std::vector<slurm::Job>& jobs);
  void compare(Request& request, const std::vector<const slurm::Job*>& jobs);
  void tell_limit(Request& request, const slurm::Job& job);
  void tell_waiting(Request& request, const std::vector<const slurm::Job*>& jobs);
  void end(Request& request, std::optional<std::int64_t> ordinal, const std::string& reason);
  static bool is_given_back(const Request& request, std::optional<std::int64_t> ordinal);
  static bool is_over(const Request& request);
  void list_within(Clock::duration time);

  std::string experiment_;
  slurm::Variables own_;
  std::map<std::uint64_t, Request> requests_ = {};
  bool cancels_others_ = false;                 // true: of this experiment's jobs, those of no request
  bool others_are_cancelled_ = false;           // true: a list was looked at since
  std::set<std::string> to_cancel_ = {};        // jobs
  std::set<std::string> being_cancelled_ = {};  // those of them that the present command cancels
  Errand list_ = {};
  Errand cancellation_ = {};
  std::vector<ProviderEvent> events_ = {};
};

}  // namespace cadre::engine::cluster
