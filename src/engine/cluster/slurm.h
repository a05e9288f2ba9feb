// Slurm's commands, and what they print. Pure.
//
// A job is named after its experiment and request, so that the jobs of a controller that was killed are found.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/cluster/provider.h"
#include "engine/cluster/variables.h"

namespace cadre::engine::cluster::slurm {

using Words = std::vector<std::string>;
using cluster::Variables;

// The oldest Slurm with all options that are used; in the words of its versions, 20.11.
inline constexpr int kOldestYear = 20;
inline constexpr int kOldestMonth = 11;

// Returns why a Slurm cannot be used, from what `sbatch --version` prints; empty if it can be.
std::string fault_of_version(std::string_view printed);
// Returns all faults of a request's options in one text; empty if there are none. `over_stdio`: see AgentStart.
std::string faults_of(const NodeRequest& request, bool over_stdio = false);

// Returns "cadre-<experiment>.<request>".
std::string job_name(std::string_view experiment, std::uint64_t request);
// Returns the request that a job of the experiment is for; empty for any other job.
std::optional<std::uint64_t> request_of(std::string_view job_name, std::string_view experiment);

// sbatch: an array with a job for each node, or one job for all_or_none. The script goes to its standard input.
Words submit_command(const NodeRequest& request, const AgentStart& start, std::string_view experiment);
std::string submit_script(const NodeRequest& request, const AgentStart& start);
// Returns the job's id from what `sbatch --parsable` prints; empty if there is none.
std::optional<std::string> submitted_job(std::string_view printed);

// srun in this process's allocation: agents on `nodes` nodes, with all that the allocation has there. `overlap`: this
// process is a step itself.
Words step_command(const NodeRequest& request, const AgentStart& start, std::int64_t nodes, bool overlap);

// squeue: all jobs of this user, also those that have ended lately.
Words list_command();
Words cancel_command(const std::vector<std::string>& jobs);

struct Job {
  std::uint64_t request = 0;
  std::string id = {};                       // "12", or "12_3" in an array: as scancel reads it
  std::optional<std::int64_t> ordinal = {};  // of its node; empty: it has all nodes of the request
  std::string state = {};                    // "PENDING"
  std::string reason = {};                   // why it waits or has ended; empty if Slurm gives none
  std::optional<double> start = {};          // if it waits, the expected time; seconds since 1970
  std::optional<double> end = {};            // by its time limit, if it runs and has one
  std::string nodes = {};

  bool has_ended() const;
  bool waits() const;
  bool runs() const;
  // Returns "job 12_3 on n1: PREEMPTED".
  std::string description() const;
};

// Returns the jobs of an experiment from what squeue prints. Other lines are ignored.
std::vector<Job> parse_jobs(std::string_view printed, std::string_view experiment);

// Returns true if a command failed since Slurm could not be asked: its controller is down or restarts.
bool is_unreachable(std::string_view errors);
// Returns what a command says, without the command's name: "Invalid partition name specified".
std::string said(std::string_view errors);
// Returns why a step waits, from srun's messages; empty if it does not, or does no longer.
std::string waiting_step(std::string_view errors);
// Returns true if srun says that the allocation of this process has ended.
bool is_allocation_over(std::string_view errors);
// Returns true if srun failed before its step began.
bool is_step_refused(std::string_view errors);
// Returns true if srun says how the task of a step with one node has ended.
bool has_task_ended(std::string_view errors);

// Returns the environment of commands, as NAME=value. For jobs without what describes the job that this process is in;
// for steps over_stdio without what changes their input and output.
std::vector<std::string> job_environment(const Variables& own, const Variables& added);
std::vector<std::string> step_environment(const Variables& own, const Variables& added, bool over_stdio = false);
// Returns true if this process is in an allocation, and then if it is a step of it that holds resources.
bool is_in_allocation(const Variables& own);
bool is_in_step(const Variables& own);
// Returns the number of nodes of the allocation; empty if it is not said.
std::optional<std::int64_t> allocated_nodes(const Variables& own);

// The time of a job, in seconds since 1970 by Slurm's clock.
struct Span {
  std::optional<double> start = {};
  std::optional<double> end = {};  // by its time limit; empty: it has none
  bool operator==(const Span&) const = default;
};
// Return the span of the allocation of this process; empty: not said. From its environment, which only newer versions
// set, and which does not know of later changes; or from what `span_command` prints, with SLURM_TIME_FORMAT=%s.
std::optional<Span> allocation_span(const Variables& own);
Words span_command(const Variables& own);
std::optional<Span> parse_span(std::string_view printed);
// Returns the seconds until a job ends; empty if it has no limit. `now`, and a time `seen` at which it ran already, are
// by this machine's clock: if that is behind Slurm's, the job's duration still says when it has ended at the latest.
std::optional<double> seconds_left(const Span& span, double now, double seen);

}  // namespace cadre::engine::cluster::slurm
