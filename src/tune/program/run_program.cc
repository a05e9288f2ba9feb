#include "tune/program/run_program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <condition_variable>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <ranges>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/directory.h"
#include "base/file.h"
#include "base/file_descriptor.h"
#include "base/json.h"
#include "base/machine.h"
#include "base/system_error.h"
#include "cadre/error.h"
#include "cadre/tune/program.h"
#include "channel/worker_end.h"
#include "engine/local/last_output.h"
#include "engine/local/outside_signals.h"
#include "tune/program/child.h"
#include "tune/program/found_metrics.h"
#include "tune/program/metrics_file.h"
#include "tune/program/placeholders.h"
#include "tune/program/report_line.h"
#include "tune/program/variables.h"
#include "tune/session.h"
#include "worker/entries.h"
#include "worker/worker.h"

extern char** environ;

namespace cadre::tune {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t kMostAtATime = std::size_t{64} << 10;  // bytes that are read before they are used
constexpr std::size_t kMostInALine = std::size_t{64} << 20;  // bytes of a report
constexpr int kTimeBetweenLooks = 50;                        // milliseconds; for files, which nobody announces
constexpr auto kTimeUntilHeld = std::chrono::seconds(1);
constexpr std::string_view kOneMachine = "127.0.0.1";  // the address of a node without others

// Stops a program that does not wait for answers, while its trial waits for longer than a second: it would compute
// while others have its resources.
class Hold {
 public:
  explicit Hold(Child& child) : child_(child), thread_([this] { watch(); }) {}
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;
  ~Hold() {
    {
      const std::lock_guard lock(mutex_);
      is_ending_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  void begin() {
    {
      const std::lock_guard lock(mutex_);
      waits_since_ = std::chrono::steady_clock::now();
    }
    changed_.notify_all();
  }
  void end() {
    const std::lock_guard lock(mutex_);
    waits_since_.reset();
    if (std::exchange(is_held_, false)) child_.send_to_all(SIGCONT);
  }

 private:
  void watch() {
    std::unique_lock lock(mutex_);
    while (!is_ending_) {
      if (!waits_since_ || is_held_) {
        changed_.wait(lock);
      } else if (const auto due = *waits_since_ + kTimeUntilHeld; std::chrono::steady_clock::now() < due) {
        changed_.wait_until(lock, due);
      } else {
        is_held_ = true;
        child_.send_to_all(SIGSTOP);
      }
    }
  }

  Child& child_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<std::chrono::steady_clock::time_point> waits_since_ = {};
  bool is_held_ = false;
  bool is_ending_ = false;
  std::thread thread_;
};

// Holds a program as long as it exists; none for nullptr.
class Holding {
 public:
  explicit Holding(Hold* hold) : hold_(hold) {
    if (hold_ != nullptr) hold_->begin();
  }
  Holding(const Holding&) = delete;
  Holding& operator=(const Holding&) = delete;
  ~Holding() {
    if (hold_ != nullptr) hold_->end();
  }

 private:
  Hold* hold_;
};

// Adds what can be read without waiting, as long as `bytes` holds no more than kMostAtATime. Closes the descriptor at
// its end.
void read_available(base::FileDescriptor& from, std::string& bytes, int copy_to = -1) {
  std::array<char, 16384> part{};
  while (from && bytes.size() < kMostAtATime) {
    const ::ssize_t count = ::read(from.get(), part.data(), part.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) return;
    if (count <= 0) return from.reset();
    const std::string_view read(part.data(), static_cast<std::size_t>(count));
    bytes += read;
    if (copy_to >= 0) base::write_all(copy_to, read, "standard output");
  }
}

// Removes the first line and returns it without its end; nothing if there is no whole line.
std::optional<std::string> take_line(std::string& bytes) {
  const std::size_t end = bytes.find('\n');
  if (end == bytes.npos) return {};
  std::string line = bytes.substr(0, end);
  bytes.erase(0, end + 1);
  return line;
}

// Moves what is in one directory into another one, which is empty. The first is gone afterwards.
void move_directory(const fs::path& from, const fs::path& to) {
  if (base::info_of(from).kind != base::FileInfo::Kind::directory)
    throw InvalidArgument(from.string() + " is no directory: a checkpoint is a directory with files");
  if (::rename(from.c_str(), to.c_str()) == 0) return;
  if (errno != EXDEV) base::throw_storage_error("move", from);
  base::copy_tree(from, to);
  base::remove_tree(from);
}

// Returns the file that this process's standard error goes to, and its size; no file if it is none.
std::pair<fs::path, std::uint64_t> error_file() {
  struct ::stat info = {};
  if (::fstat(STDERR_FILENO, &info) != 0 || !S_ISREG(info.st_mode)) return {};
  std::error_code error;
  fs::path path = fs::read_symlink("/proc/self/fd/2", error);
  return {std::move(path), static_cast<std::uint64_t>(info.st_size)};
}

class ProgramRun {
 public:
  explicit ProgramRun(Session& session)
      : session_(session),
        program_(session.assignment().program),
        variables_(session),
        found_(session.assignment().metric),
        patterns_(program_.metric_patterns) {}

  void run() {
    start();
    try {
      while (!child_->status()) {
        wait_for_news();
        take_news();
      }
      take_last_news();
    } catch (const worker::StopWorker&) {
      stop();
      throw;
    }
    check_end();
  }

 private:
  void start();
  void wait_for_news();
  void read_news();
  void take_news();
  void take_last_news();
  void take_report_line(const std::string& text);
  void take_output_line(const std::string& line);
  void take_rows(bool is_complete);
  void report(const Metrics& metrics, ReportLine::Kind kind);
  Hold* hold();
  std::optional<fs::path> take_saved(ReportLine::Kind kind);
  void save_into(const fs::path& directory, ReportLine::Kind kind);
  void wait_until_saved();
  void wait_for_directory();
  void answer(std::string_view text);
  void stop();
  void check_end();
  [[noreturn]] void fail(const std::string& why) const;
  std::string name() const { return program_.command.front(); }

  Session& session_;
  const Program& program_;
  ProgramVariables variables_;
  FoundMetrics found_;
  MetricPatterns patterns_;
  std::optional<MetricsFile> file_ = {};
  base::FileDescriptor socket_ = {};  // the other end of the program's CADRE_REPORT_FD
  base::FileDescriptor output_ = {};  // of its standard output, if that is searched
  std::string reported_ = {};         // read from the socket, and not yet used
  std::string printed_ = {};          // read from its output, and not yet used
  std::pair<fs::path, std::uint64_t> errors_ = error_file();
  std::optional<fs::path> saved_ = {};  // a checkpoint for the next report
  // The experiment's metric, or anything if there is none. A program that continues may have been at its end.
  bool has_reported_ = !session_.assignment().checkpoint.empty();
  bool waits_for_answer_ = false;
  std::unique_ptr<Child> child_ = nullptr;
  std::unique_ptr<Hold> hold_ = nullptr;  // made when it is needed first
};

void ProgramRun::start() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
    throw Error("cannot make a socket for its reports: " + base::last_system_error());
  socket_ = base::FileDescriptor(ends[0]);
  const base::FileDescriptor programs_socket(ends[1]);
  ::fcntl(socket_.get(), F_SETFL, O_NONBLOCK);
  base::FileDescriptor programs_output;
  if (!program_.metric_patterns.empty()) {
    if (::pipe2(ends.data(), O_CLOEXEC) != 0)
      throw Error("cannot make a pipe for its output: " + base::last_system_error());
    output_ = base::FileDescriptor(ends[0]);
    programs_output = base::FileDescriptor(ends[1]);
    ::fcntl(output_.get(), F_SETFL, O_NONBLOCK);
  }
  variables_.make_files();
  ChildStart start{.command = variables_.command(),
                   .environment = variables_.environment(),
                   .directory = variables_.working_directory(),
                   .output = programs_output.get(),
                   .report = programs_socket.get()};
  if (!program_.metrics_file.empty()) file_.emplace(variables_.metrics_file(), found_);
  try {
    child_ = std::make_unique<Child>(start);
  } catch (const Error& error) {
    if (session_.assignment().node_ip == kOneMachine) throw;
    throw Error(
        fmt::format("{}. That is on {}: a program and its directory must be there under the same path on each node",
                    error.what(), base::host_name()));
  }
}

// ---- Reading

void ProgramRun::wait_for_news() {
  std::vector<::pollfd> files{{.fd = child_->end(), .events = POLLIN, .revents = 0}};
  if (socket_) files.push_back({.fd = socket_.get(), .events = POLLIN, .revents = 0});
  if (output_) files.push_back({.fd = output_.get(), .events = POLLIN, .revents = 0});
  ::poll(files.data(), files.size(), file_ ? kTimeBetweenLooks : -1);
  read_news();
}

void ProgramRun::read_news() {
  // A line that is not complete must not keep the rest of it from being read.
  const auto read = [](base::FileDescriptor& from, std::string& bytes, int copy_to = -1) {
    std::string more;
    if (bytes.size() < kMostAtATime || bytes.find('\n') == bytes.npos) read_available(from, more, copy_to);
    bytes += more;
    if (bytes.size() > kMostInALine) throw InvalidArgument("the program wrote a line of more than 64 MiB");
  };
  read(socket_, reported_);
  read(output_, printed_, STDOUT_FILENO);
}

void ProgramRun::take_news() {
  while (const std::optional<std::string> line = take_line(reported_)) take_report_line(*line);
  while (const std::optional<std::string> line = take_line(printed_)) take_output_line(*line);
  if (file_) take_rows(false);
}

// Takes what was left in the pipes when the program ended. Processes that it has started may still have them open.
void ProgramRun::take_last_news() {
  std::size_t before = 0;
  do {
    read_news();
    before = reported_.size() + printed_.size();
    take_news();
  } while (reported_.size() + printed_.size() < before);
  if (*child_->status() == 0 && !reported_.empty()) take_report_line(std::exchange(reported_, {}));
  if (!printed_.empty()) take_output_line(std::exchange(printed_, {}));
  if (file_) take_rows(true);
  if (const std::optional<Metrics> rest = found_.rest()) report(*rest, ReportLine::Kind::tell);
}

void ProgramRun::take_report_line(const std::string& text) {
  const ReportLine line = parse_report_line(text);
  if (line.kind == ReportLine::Kind::saved) {
    saved_ = line.directory.empty() ? variables_.checkpoint_out() : variables_.in_working_directory(line.directory);
    return;
  }
  waits_for_answer_ = line.kind != ReportLine::Kind::tell;
  report(line.metrics, line.kind);
  if (std::exchange(waits_for_answer_, false)) answer(answer::go_on);
}

void ProgramRun::take_output_line(const std::string& line) {
  patterns_.search(line, found_);
  if (const std::optional<Metrics> found = found_.end_step()) report(*found, ReportLine::Kind::tell);
}

void ProgramRun::take_rows(bool is_complete) {
  for (const Metrics& row : file_->read(is_complete)) report(row, ReportLine::Kind::tell);
}

// ---- Reports and checkpoints

void ProgramRun::report(const Metrics& metrics, ReportLine::Kind kind) {
  const std::string& objective = session_.assignment().metric;
  has_reported_ = has_reported_ || objective.empty() || metrics.find(objective) != nullptr;
  const Holding holding(kind == ReportLine::Kind::tell ? hold() : nullptr);
  if (const std::optional<fs::path> saved = take_saved(kind)) {
    CheckpointDirectory directory = session_.make_checkpoint_directory();
    move_directory(*saved, directory.path());
    session_.report(metrics, Checkpoint::from_directory(std::move(directory)));
  } else if (kind == ReportLine::Kind::offer || program_.checkpoint_signal) {
    session_.report(metrics, CheckpointWriter([&](const fs::path& path) { save_into(path, kind); }));
  } else {
    session_.report(metrics);
  }
}

Hold* ProgramRun::hold() {
  if (!hold_) hold_ = std::make_unique<Hold>(*child_);
  return hold_.get();
}

// A program that waits for answers says when a checkpoint is complete. Of the others, one is complete when it is there.
std::optional<fs::path> ProgramRun::take_saved(ReportLine::Kind kind) {
  if (saved_) return std::exchange(saved_, std::nullopt);
  if (kind == ReportLine::Kind::tell && fs::exists(variables_.checkpoint_out())) return variables_.checkpoint_out();
  return {};
}

void ProgramRun::save_into(const fs::path& directory, ReportLine::Kind kind) {
  if (kind == ReportLine::Kind::offer) {
    base::remove_tree(variables_.checkpoint_out());
    base::make_directory(variables_.checkpoint_out());
    answer(answer::checkpoint);
    wait_until_saved();
  } else {
    hold()->end();
    child_->send(*signal_of(*program_.checkpoint_signal));
    wait_for_directory();
    hold()->begin();
  }
  move_directory(take_saved(kind).value_or(variables_.checkpoint_out()), directory);
}

void ProgramRun::wait_until_saved() {
  while (true) {
    if (const std::optional<std::string> text = take_line(reported_)) {
      const ReportLine line = parse_report_line(*text);
      if (line.kind != ReportLine::Kind::saved)
        throw InvalidArgument(
            "the program was asked for a checkpoint and answered with a report: it must fill "
            "CADRE_CHECKPOINT_OUT and write \"saved\"");
      if (!line.directory.empty()) saved_ = variables_.in_working_directory(line.directory);
      return;
    }
    if (child_->status()) fail("instead of writing the checkpoint that it was asked for");
    wait_for_news();
  }
}

void ProgramRun::wait_for_directory() {
  while (!fs::exists(variables_.checkpoint_out())) {
    if (child_->status()) fail("instead of writing the checkpoint that it was asked for by a signal");
    child_->wait(std::chrono::milliseconds(kTimeBetweenLooks));
    read_news();
  }
}

// A program that does not read its answers loses them when the socket is full.
void ProgramRun::answer(std::string_view text) {
  if (socket_) ::send(socket_.get(), text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
}

// ---- The end

void ProgramRun::stop() {
  if (waits_for_answer_) {
    answer(answer::stop);
  } else {
    child_->send(SIGTERM);
  }
  child_->wait(program_.stop_patience);
  hold_.reset();
  child_.reset();
}

void ProgramRun::check_end() {
  const int status = *child_->status();
  if (WIFSIGNALED(status) && engine::local::is_outside_signal(WTERMSIG(status))) {
    // The controller must see whether all processes got this signal: then it was meant for the experiment.
    ::raise(WTERMSIG(status));
  }
  if (status != 0) fail("");
  if (has_reported_) return;
  const std::string& objective = session_.assignment().metric;
  if (!objective.empty()) fail("without having reported \"" + objective + "\", the experiment's metric");
}

void ProgramRun::fail(const std::string& why) const {
  const std::string end = fmt::format("{} ended with {}{}", name(), describe_status(child_->status().value_or(0)),
                                      why.empty() ? "" : " " + why);
  std::string output = engine::local::last_output(errors_.first, errors_.second);
  const char* what = "its last output on standard error:";
  if (output.empty()) {
    output = engine::local::last_output(fs::path(session_.assignment().trial_directory) / "stdout", 0);
    what = "its last output:";
  }
  throw Error(output.empty() ? end + "; it printed nothing" : end + "; " + what + "\n" + output);
}

// No function has such a name.
constexpr const char* kProgramEntry = "program of a trial";

[[maybe_unused]] const bool program_is_registered =
    worker::register_entry(kProgramEntry, [](channel::WorkerEnd& controller, const Value& payload) {
      run_trial(controller, payload, [](Session& session) { ProgramRun(session).run(); });
      return Value();
    });

}  // namespace

std::string program_entry() { return kProgramEntry; }

}  // namespace cadre::tune
