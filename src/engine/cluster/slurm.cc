#include "engine/cluster/slurm.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <set>

#include "engine/cluster/ordinal.h"
#include "engine/cluster/shell.h"

namespace cadre::engine::cluster::slurm {
namespace {

// Options that the commands here set themselves.
const std::set<std::string, std::less<>> kOwnOptions = {
    "array",   "chdir",      "export", "export-file", "job-name",        "kill-on-bad-exit",
    "no-kill", "no-requeue", "nodes",  "ntasks",      "ntasks-per-node", "parsable",
    "requeue", "wait",       "wrap"};

// Options of a step that would change, or end elsewhere, what it reads and writes.
const std::set<std::string, std::less<>> kStreamOptions = {"input", "label", "output", "pty", "unbuffered"};

template <class Number>
std::optional<Number> number_of(std::string_view text) {
  Number number{};
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (fault != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == text.npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

bool is_option_name(std::string_view name) {
  return !name.empty() && name.front() >= 'a' && name.front() <= 'z' &&
         std::ranges::all_of(name, [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; });
}

void append_options(Words& command, const std::map<std::string, std::string>& options) {
  for (const auto& [name, value] : options)
    command.push_back(value.empty() ? "--" + name : fmt::format("--{}={}", name, value));
}

// Runs the agent with the number of its task among those of the step.
Words numbered_by_task(const AgentStart& start) {
  Words command = {"/bin/sh", "-c", fmt::format("{}=\"$SLURM_PROCID\" exec \"$@\"", kOrdinalVariable), "sh"};
  command.insert(command.end(), start.command.begin(), start.command.end());
  return command;
}

// Agents use all CPUs of the node: Slurm must not bind a task to one. A step lives on without the nodes that are lost.
// `input`: what tasks read.
Words launch_options(std::int64_t nodes, const char* input) {
  return {fmt::format("--nodes={}", nodes),
          fmt::format("--ntasks={}", nodes),
          "--ntasks-per-node=1",
          "--cpu-bind=none",
          "--no-kill",
          "--kill-on-bad-exit=0",
          "--export=ALL",
          fmt::format("--input={}", input)};
}

void add(Variables& variables, const Variables& added) {
  for (const auto& [name, value] : added) variables[name] = value;
}

std::string value_in(const Variables& variables, const std::string& name) {
  const auto found = variables.find(name);
  return found == variables.end() ? "" : found->second;
}

std::string_view without_prefix(std::string_view line) {
  for (const std::string_view program : {"sbatch: ", "srun: ", "scancel: ", "squeue: "}) {
    if (line.starts_with(program)) line.remove_prefix(program.size());
  }
  for (const std::string_view kind : {"error: ", "fatal: "}) {
    if (line.starts_with(kind)) line.remove_prefix(kind.size());
  }
  return line;
}

// Warning of srun about --cpu-bind=none where nothing is bound anyway.
constexpr std::string_view kNoBinding = "lacks support for cpu binding";

}  // namespace

std::string fault_of_version(std::string_view printed) {
  const std::string_view text = trimmed(printed);
  const std::string_view version = text.substr(text.rfind(' ') + 1);
  const std::vector<std::string_view> parts = split(version, '.');
  const std::optional<int> year = number_of<int>(parts.front());
  const std::optional<int> month = parts.size() > 1 ? number_of<int>(parts[1]) : std::nullopt;
  if (!year || !month)
    return fmt::format("sbatch says \"{}\" for its version; Slurm {}.{} or newer is needed", text, kOldestYear,
                       kOldestMonth);
  if (std::pair(*year, *month) >= std::pair(kOldestYear, kOldestMonth)) return "";
  return fmt::format("this is Slurm {}; {}.{} or newer is needed", version, kOldestYear, kOldestMonth);
}

std::string faults_of(const NodeRequest& request, bool over_stdio) {
  std::vector<std::string> faults;
  if (request.nodes < 1) faults.push_back(fmt::format("{} nodes are none", request.nodes));
  for (const auto& [name, value] : request.options) {
    if (!is_option_name(name)) {
      faults.push_back(fmt::format("\"{}\" is no name of an option (\"partition\", without dashes)", name));
    } else if (kOwnOptions.contains(name)) {
      faults.push_back(fmt::format("the option \"{}\" is set by Cadre", name));
    } else if (over_stdio && kStreamOptions.contains(name)) {
      faults.push_back(fmt::format("the option \"{}\" is set by Cadre where srun carries the session", name));
    } else if (value.find('\n') != value.npos || value.find('\0') != value.npos) {
      faults.push_back(fmt::format("the option \"{}\" has a line break", name));
    }
  }
  return fmt::format("{}", fmt::join(faults, "; "));
}

std::string job_name(std::string_view experiment, std::uint64_t request) {
  return fmt::format("cadre-{}.{}", experiment, request);
}

std::optional<std::uint64_t> request_of(std::string_view job_name, std::string_view experiment) {
  const std::string prefix = fmt::format("cadre-{}.", experiment);
  if (!job_name.starts_with(prefix)) return std::nullopt;
  return number_of<std::uint64_t>(job_name.substr(prefix.size()));
}

Words submit_command(const NodeRequest& request, const AgentStart& start, std::string_view experiment) {
  Words command = {"sbatch", "--parsable", "--no-requeue", "--export=ALL",
                   "--job-name=" + job_name(experiment, request.id)};
  if (!start.directory.empty()) command.push_back("--chdir=" + start.directory.string());
  if (request.all_or_none) {
    command.push_back(fmt::format("--nodes={}", request.nodes));
  } else {
    command.insert(command.end(), {fmt::format("--array=0-{}", request.nodes - 1), "--nodes=1"});
  }
  command.push_back("--ntasks-per-node=1");
  const auto has = [&](const char* option) { return request.options.contains(option); };
  if (request.cpus > 0) {
    command.push_back(fmt::format("--cpus-per-task={}", static_cast<std::int64_t>(std::ceil(request.cpus))));
  } else if (!has("exclusive") && !has("cpus-per-task")) {
    command.emplace_back("--exclusive");
  }
  if (request.gpus > 0 && !has("gres") && !has("gpus-per-node"))
    command.push_back(fmt::format("--gres=gpu:{}", request.gpus));
  if (!has("output")) command.emplace_back("--output=/dev/null");
  append_options(command, request.options);
  return command;
}

std::string submit_script(const NodeRequest& request, const AgentStart& start) {
  std::string script = "#!/bin/sh\n";
  if (!start.log.empty()) script += log_lines(start.log, request.all_or_none ? "" : "_\"$SLURM_ARRAY_TASK_ID\"");
  if (!request.all_or_none)
    return script + fmt::format("{}=\"$SLURM_ARRAY_TASK_ID\" exec {}\n", kOrdinalVariable, shell_line(start.command));
  Words launch = {"srun"};
  const Words options = launch_options(request.nodes, "none");
  launch.insert(launch.end(), options.begin(), options.end());
  launch.emplace_back("--");
  const Words agent = numbered_by_task(start);
  launch.insert(launch.end(), agent.begin(), agent.end());
  return script + fmt::format("exec {}\n", shell_line(launch));
}

std::optional<std::string> submitted_job(std::string_view printed) {
  for (const std::string_view line : split(printed, '\n')) {  // plugins of a site may print lines of their own
    const std::string_view job = trimmed(line.substr(0, line.find(';')));  // "12;cluster"
    if (!job.empty() && number_of<std::uint64_t>(job)) return std::string(job);
  }
  return std::nullopt;
}

Words step_command(const NodeRequest& request, const AgentStart& start, std::int64_t nodes, bool overlap) {
  Words command = {"srun"};
  const Words options = launch_options(nodes, start.over_stdio ? "all" : "none");
  command.insert(command.end(), options.begin(), options.end());
  if (start.over_stdio) command.emplace_back("--unbuffered");  // otherwise Slurm waits for the end of a line
  if (overlap) command.emplace_back("--overlap");
  if (!start.directory.empty()) command.push_back("--chdir=" + start.directory.string());
  std::map<std::string, std::string> further = request.options;
  further.erase("exclusive");  // of a step: only the resources that it names
  append_options(command, further);
  command.emplace_back("--");
  const Words agent = nodes == 1 ? start.command : numbered_by_task(start);
  command.insert(command.end(), agent.begin(), agent.end());
  return command;
}

Words list_command() {
  return {"squeue", "--noheader", "--array", "--me", "--states=all", "--format=%F|%K|%T|%r|%S|%e|%N|%j"};
}

Words cancel_command(const std::vector<std::string>& jobs) {
  Words command = {"scancel"};
  command.insert(command.end(), jobs.begin(), jobs.end());
  return command;
}

// No set: engines are asked until the last static objects are destroyed.
bool Job::has_ended() const {
  static constexpr std::array<std::string_view, 10> ends = {"BOOT_FAIL",     "CANCELLED", "COMPLETED", "DEADLINE",
                                                            "FAILED",        "NODE_FAIL", "PREEMPTED", "REVOKED",
                                                            "OUT_OF_MEMORY", "TIMEOUT"};
  return std::ranges::find(ends, state) != ends.end();
}

bool Job::waits() const { return state == "PENDING" || state == "CONFIGURING" || state.starts_with("REQUEUE"); }

bool Job::runs() const { return state == "RUNNING"; }

std::string Job::description() const {
  return fmt::format("job {}{}{}: {}{}", id, nodes.empty() ? "" : " on ", nodes, state,
                     reason.empty() ? "" : " (" + reason + ")");
}

std::vector<Job> parse_jobs(std::string_view printed, std::string_view experiment) {
  std::vector<Job> jobs;
  for (const std::string_view line : split(printed, '\n')) {
    const std::vector<std::string_view> fields = split(line, '|');
    if (fields.size() != 8) continue;
    const std::optional<std::uint64_t> request = request_of(trimmed(fields[7]), experiment);
    if (!request || !number_of<std::uint64_t>(fields[0])) continue;
    Job job{.request = *request, .ordinal = number_of<std::int64_t>(fields[1]), .state = std::string(fields[2])};
    job.id = job.ordinal ? fmt::format("{}_{}", fields[0], *job.ordinal) : std::string(fields[0]);
    if (fields[3] != "None") job.reason = fields[3];
    job.start = number_of<double>(fields[4]);
    if (job.runs()) job.end = number_of<double>(fields[5]);
    if (fields[6].find('(') == fields[6].npos) job.nodes = fields[6];
    jobs.push_back(std::move(job));
  }
  return jobs;
}

bool is_unreachable(std::string_view errors) {
  static constexpr std::array texts = {"Unable to contact slurm controller",
                                       "Socket timed out",
                                       "Zero Bytes were transmitted",
                                       "Connection refused",
                                       "Connection timed out",
                                       "Slurm temporarily unable to accept job",
                                       "Slurm controller in standby mode",
                                       "Transport endpoint is not connected",
                                       "Munge encode failed",
                                       "Unable to establish controller machine",
                                       "Resource temporarily unavailable",
                                       "Unexpected message received",
                                       "SlurmDBD connection"};
  return std::ranges::any_of(texts, [&](const char* text) { return errors.find(text) != errors.npos; });
}

std::string said(std::string_view errors) {
  std::string said;
  for (const std::string_view line : split(errors, '\n')) {
    const std::string_view text = without_prefix(trimmed(line));
    if (text.find(kNoBinding) == text.npos) said += std::string(text) + "\n";
  }
  return in_one_line(said);
}

std::string waiting_step(std::string_view errors) {
  std::string reason;
  for (const std::string_view line : split(errors, '\n')) {
    if (!line.starts_with("srun: ")) continue;
    if (line.find("temporarily disabled, retrying") != line.npos || line.find("queued and waiting") != line.npos) {
      const std::size_t begin = line.find('(');
      reason = begin == line.npos ? std::string(without_prefix(line))
                                  : std::string(line.substr(begin + 1, line.find(')', begin) - begin - 1));
    } else if (line.find("Step created") != line.npos || line.find("has been allocated resources") != line.npos) {
      reason.clear();
    }
  }
  return reason;
}

bool is_allocation_over(std::string_view errors) {
  static constexpr std::array texts = {"has expired", "Expired or invalid job", "already completing or completed"};
  return std::ranges::any_of(split(errors, '\n'), [&](std::string_view line) {
    const bool is_of_srun = line.starts_with("srun: ") || line.starts_with("Slurm job ");
    return is_of_srun && std::ranges::any_of(texts, [&](const char* text) { return line.find(text) != line.npos; });
  });
}

bool is_step_refused(std::string_view errors) {
  static constexpr std::array texts = {"Unable to create step",
                                       "Only allocated",
                                       "Unable to confirm allocation",
                                       "Invalid option",
                                       "unrecognized option",
                                       "Unable to allocate resources",
                                       "Invalid node name",
                                       "fatal:"};
  return std::ranges::any_of(split(errors, '\n'), [&](std::string_view line) {
    return line.starts_with("srun: ") &&
           std::ranges::any_of(texts, [&](const char* text) { return line.find(text) != line.npos; });
  });
}

bool has_task_ended(std::string_view errors) {
  constexpr std::string_view task = ": task 0: ";  // srun: error: n1: task 0: Killed
  return std::ranges::any_of(split(errors, '\n'), [&](std::string_view line) {
    return line.starts_with("srun: error: ") && line.find(task) != line.npos;
  });
}

std::vector<std::string> job_environment(const Variables& own, const Variables& added) {
  Variables variables;
  for (const auto& [name, value] : own) {
    const bool of_a_job = name.starts_with("SLURM_") || name.starts_with("SLURMD_") || name.starts_with("SRUN_") ||
                          name.starts_with("PMI") || name == "SBATCH_WAIT";
    if (!of_a_job || name == "SLURM_CONF") variables[name] = value;
  }
  add(variables, added);
  return as_environment(variables);
}

std::vector<std::string> step_environment(const Variables& own, const Variables& added, bool over_stdio) {
  Variables variables = own;
  if (over_stdio) {
    for (const char* name : {"SLURM_LABELIO", "SLURM_STDINMODE", "SLURM_STDOUTMODE", "SLURM_STDERRMODE"})
      variables.erase(name);
  }
  add(variables, added);
  return as_environment(variables);
}

bool is_in_allocation(const Variables& own) { return !value_in(own, "SLURM_JOB_ID").empty(); }

bool is_in_step(const Variables& own) {
  constexpr std::uint64_t special_steps = 0xfffffff0;  // of a batch script, of an interactive shell
  const std::optional<std::uint64_t> step = number_of<std::uint64_t>(value_in(own, "SLURM_STEP_ID"));
  return step && *step < special_steps;
}

std::optional<std::int64_t> allocated_nodes(const Variables& own) {
  return number_of<std::int64_t>(value_in(own, "SLURM_JOB_NUM_NODES"));
}

std::optional<Span> allocation_span(const Variables& own) {
  const std::optional<double> end = number_of<double>(value_in(own, "SLURM_JOB_END_TIME"));
  if (!end) return std::nullopt;
  return Span{.start = number_of<double>(value_in(own, "SLURM_JOB_START_TIME")), .end = end};
}

// The number of an array's job may be that of the whole array, too.
Words span_command(const Variables& own) {
  const std::string array = value_in(own, "SLURM_ARRAY_JOB_ID");
  const std::string job =
      array.empty() ? value_in(own, "SLURM_JOB_ID") : array + "_" + value_in(own, "SLURM_ARRAY_TASK_ID");
  return {"squeue", "--noheader", "--jobs=" + job, "--format=%S|%e"};
}

std::optional<Span> parse_span(std::string_view printed) {
  std::optional<Span> span;
  for (const std::string_view line : split(printed, '\n')) {  // each part of a heterogeneous job has one
    const std::vector<std::string_view> fields = split(trimmed(line), '|');
    const std::optional<double> start = number_of<double>(fields.front());
    if (fields.size() != 2 || !start) continue;
    const Span part{.start = start, .end = number_of<double>(fields[1])};
    if (!span || (part.end && (!span->end || *part.end < *span->end))) span = part;
  }
  return span;
}

std::optional<double> seconds_left(const Span& span, double now, double seen) {
  if (!span.end) return std::nullopt;
  const double by_clocks = *span.end - now;
  return span.start ? std::min(by_clocks, *span.end - *span.start - (now - seen)) : by_clocks;
}

}  // namespace cadre::engine::cluster::slurm
