#include "survival/controller_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <thread>

#include "base/file_descriptor.h"
#include "cadre/init.h"
#include "support/temporary_directory.h"
#include "survival/network.h"
#include "worker/cluster.h"

namespace cadre::survival {
namespace fs = std::filesystem;
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kOption = "--controller";

// Converts the setting to arguments; from_arguments() converts it back.
std::vector<std::string> to_arguments(const ControllerOptions& options) {
  const Setting& setting = options.setting;
  std::vector<std::string> arguments{kOption, options.experiment.string()};
  for (const std::int64_t number :
       {std::int64_t{options.slots}, std::int64_t{setting.synch}, setting.population, setting.steps, setting.interval,
        setting.checkpoint_interval, std::int64_t{setting.copied}, setting.num_to_keep, setting.max_failures,
        std::int64_t{setting.verbose}, std::int64_t{setting.is_class}, std::int64_t{setting.has_programs},
        std::int64_t{options.nodes}, std::int64_t{options.over_stdio}})
    arguments.push_back(std::to_string(number));
  return arguments;
}

ControllerOptions from_arguments(char** argv) {
  const auto number = [&](int index) { return std::atoll(argv[index]); };
  return {.experiment = argv[2],
          .setting = {.synch = number(4) != 0,
                      .population = number(5),
                      .steps = number(6),
                      .interval = number(7),
                      .checkpoint_interval = number(8),
                      .copied = number(9) != 0,
                      .num_to_keep = number(10),
                      .max_failures = number(11),
                      .verbose = number(12) != 0,
                      .is_class = number(13) != 0,
                      .has_programs = number(14) != 0},
          .slots = static_cast<int>(number(3)),
          .nodes = static_cast<int>(number(15)),
          .over_stdio = number(16) != 0};
}

// Trials go on elsewhere as soon as may be.
std::optional<ClusterConfig> cluster_of(const ControllerOptions& options) {
  if (options.nodes == 0) return std::nullopt;
  ClusterConfig config{
      .engine = "processes", .groups = {{.nodes = options.nodes}}, .patience = std::chrono::seconds(25)};
  if (options.over_stdio) {
    config.link = "stdio";
    config.nodes_stay = std::chrono::seconds(0);
  } else {
    config.addresses = {"127.0.0.1"};
    config.nodes_stay = std::chrono::seconds(10);  // less than tests wait for processes that are left
  }
  return config;
}

// Restores the experiment if possible. Only the process that begins an experiment holds its object.
tune::Tuner make_tuner(const ControllerOptions& options) {
  if (tune::Tuner::can_restore(options.experiment))
    return tune::Tuner::restore(options.experiment,
                                tune::RestoreOptions{.callbacks = callbacks(), .publish_config = publish_config()});
  return {trainable_of(options.setting), options_of(options.setting, options.experiment, put_table())};
}

int code_of(const Error& error) {
  if (dynamic_cast<const EngineError*>(&error) != nullptr) return Ended::engine_error;
  if (dynamic_cast<const OutOfSpace*>(&error) != nullptr) return Ended::out_of_space;
  if (dynamic_cast<const StorageError*>(&error) != nullptr) return Ended::storage_error;
  if (dynamic_cast<const Interrupted*>(&error) != nullptr) return Ended::interrupted;
  return Ended::other_error;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> found;
  for (std::string& text : texts) found.push_back(text.data());
  found.push_back(nullptr);
  return found;
}

// Tests send these signals, which are ignored in the background of a shell without job control, and below nohup.
void heed_signals(posix_spawnattr_t& attributes) {
  sigset_t signals;
  ::sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGQUIT, SIGHUP}) ::sigaddset(&signals, signal);
  ::posix_spawnattr_setsigdefault(&attributes, &signals);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
}

// Fields of /proc/<process>/stat: name, state and parent.
struct Status {
  std::string name;
  char state = 0;
  pid_t parent = 0;
};

std::optional<Status> status_of(const fs::path& entry) {
  std::ifstream file(entry / "stat");
  std::string text;
  std::getline(file, text);
  const std::size_t begin = text.find('(');
  const std::size_t end = text.rfind(')');  // the name may contain anything
  if (begin == text.npos || end == text.npos || end + 4 >= text.size()) return std::nullopt;
  return Status{text.substr(begin + 1, end - begin - 1), text[end + 2], std::atoi(text.c_str() + end + 4)};
}

std::string describe(pid_t process) {
  const auto status = status_of(fs::path("/proc") / std::to_string(process));
  return fmt::format("process {} ({}, state {})", process, status ? status->name : "?", status ? status->state : '?');
}

}  // namespace

std::vector<pid_t> children_of(pid_t parent) {
  std::vector<pid_t> children;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc", error)) {
    const pid_t process = std::atoi(entry.path().filename().c_str());
    if (process <= 0) continue;
    const auto status = status_of(entry.path());
    if (status && status->parent == parent && status->state != 'Z') children.push_back(process);
  }
  return children;
}

std::vector<pid_t> workers_of(pid_t server) {
  std::vector<pid_t> workers = children_of(server);
  std::erase_if(workers, [](pid_t process) {
    const auto status = status_of(fs::path("/proc") / std::to_string(process));
    return !status || status->name == "cadre-watcher";
  });
  return workers;
}

fs::path program_beside(std::string_view name) { return fs::read_symlink("/proc/self/exe").parent_path() / name; }

ControllerProcess::ControllerProcess(const ControllerOptions& options)
    : ControllerProcess(to_arguments(options), options.environment,
                        options.said.empty() ? fs::path(options.experiment.string() + ".said") : options.said) {}

ControllerProcess::ControllerProcess(std::vector<std::string> arguments, std::vector<std::string> environment,
                                     fs::path said, const fs::path& program)
    : said_(std::move(said)) {
  std::error_code is_first;
  said_before_ = fs::file_size(said_, is_first);
  if (is_first) said_before_ = 0;
  arguments.emplace(arguments.begin(), "controller");
  for (char** entry = ::environ; *entry != nullptr; ++entry) environment.emplace_back(*entry);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, said_.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0666);
  ::posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  heed_signals(attributes);
  const int error = ::posix_spawn(&process_, program.c_str(), &actions, &attributes, pointers(arguments).data(),
                                  pointers(environment).data());
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0) throw std::runtime_error(std::string("cannot start a controller: ") + std::strerror(error));
}

ControllerProcess::~ControllerProcess() {
  if (process_ < 0) return;
  kill(SIGKILL);
  ::waitpid(process_, nullptr, 0);
}

std::string ControllerProcess::said() const {
  const std::string all = test_support::content_of(said_);
  return all.substr(std::min<std::size_t>(all.size(), said_before_));
}

std::vector<pid_t> ControllerProcess::server() const {
  return process_ < 0 ? std::vector<pid_t>() : children_of(process_);
}

std::vector<pid_t> ControllerProcess::workers() const {
  const std::vector<pid_t> parent = server();
  return parent.empty() ? parent : workers_of(parent.front());
}

std::vector<pid_t> ControllerProcess::family() const {
  std::vector<pid_t> family;
  if (process_ >= 0) family.push_back(process_);
  for (std::size_t next = 0; next < family.size(); ++next)
    std::ranges::copy(children_of(family[next]), std::back_inserter(family));
  return family;
}

bool ControllerProcess::has_ended() const {
  siginfo_t ended{};
  return ::waitid(P_PID, static_cast<id_t>(process_), &ended, WEXITED | WNOHANG | WNOWAIT) == 0 && ended.si_pid != 0;
}

std::optional<Ended> ControllerProcess::wait(std::chrono::nanoseconds timeout) {
  const base::FileDescriptor end(static_cast<int>(::syscall(SYS_pidfd_open, process_, 0)));
  pollfd ready{end.get(), POLLIN, 0};
  const timespec span{timeout.count() / 1'000'000'000, timeout.count() % 1'000'000'000};
  if (::ppoll(&ready, 1, &span, nullptr) != 1) return std::nullopt;
  int status = 0;
  ::waitpid(std::exchange(process_, -1), &status, 0);
  return Ended{WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status), said()};
}

std::string ControllerProcess::what_hangs() const {
  constexpr std::size_t most = 2000;
  std::string text = "it hangs";
  for (const pid_t process : family()) text += ", " + describe(process);
  const std::string said = this->said();
  return text + "; it said: " + said.substr(said.size() - std::min(said.size(), most));
}

void ControllerProcess::kill(int signal) const { ::kill(process_, signal); }

void run_if_controller(int argc, char** argv) {
  if (argc < 2 || std::strcmp(argv[1], kOption) != 0) return;
  const ControllerOptions options = from_arguments(argv);
  run_controller(options, argc, argv);
}

void run_controller(const ControllerOptions& options, int argc, char** argv) {
  run_controller([&] {
    enter_network();
    if (options.nodes > 0 || std::getenv(worker::cluster_variable) != nullptr) ::setenv(kClaimVariable, "1", 1);
    cadre::init(argc, argv, {.num_cpus = options.slots, .cluster = cluster_of(options)});
    make_tuner(options).fit();
  });
}

void run_controller(const std::function<void()>& act) {
  int code = Ended::finished;
  try {
    act();
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    code = code_of(error);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "no error of Cadre's: %s\n", error.what());
    code = Ended::other_error;
  }
  std::exit(code);
}

fs::path output_of(pid_t process) {
  std::error_code error;
  return fs::read_symlink(fmt::format("/proc/{}/fd/{}", process, STDOUT_FILENO), error);
}

void adopt_orphans() { ::prctl(PR_SET_CHILD_SUBREAPER, 1); }

std::vector<std::string> still_running(std::chrono::nanoseconds patience, pid_t helper) {
  const auto others = [&] {
    std::vector<pid_t> children = children_of(::getpid());
    std::erase(children, helper);
    return children;
  };
  for (const auto deadline = Clock::now() + patience;;) {
    const pid_t ended = ::waitpid(-1, nullptr, WNOHANG);
    if (ended < 0) return {};
    if (ended > 0) continue;
    if (helper >= 0 && others().empty()) return {};
    if (Clock::now() >= deadline) break;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  std::vector<std::string> left;
  for (const pid_t process : others()) left.push_back(describe(process));
  return left;
}

}  // namespace cadre::survival
