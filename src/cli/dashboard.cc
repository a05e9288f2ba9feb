// cadre dashboard: pages about experiments on this machine, which grow while these run.
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "base/file.h"
#include "base/file_descriptor.h"
#include "base/spawn.h"
#include "base/temporary_folder.h"
#include "cadre/error.h"
#include "cli/commands.h"
#include "cli/dashboard_controls.h"
#include "cli/dashboard_experiments.h"
#include "cli/output.h"
#include "dashboard/board.h"
#include "dashboard/control_queue.h"
#include "dashboard/reader.h"
#include "dashboard/site.h"
#include "dashboard/token.h"
#include "http/server.h"
#include "store/run_directory.h"

namespace cadre::cli {
namespace {

namespace fs = std::filesystem;

// A page is served while the reader may be busy, but not longer than this at the end.
constexpr std::chrono::milliseconds kLongestEnd(500);

struct DashboardOptions {
  std::vector<std::string> places = {};
  std::int64_t port = 0;
  std::string address = "127.0.0.1";
  fs::path token_file = {};
  double interval = 1;
  bool allow_control = false;
  bool open = false;
};

// Starts a thread that gets no signals, and so do all that it starts, such as those of a storage's library: signals are
// the server's.
std::thread thread_without_signals(std::function<void()> work) {
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread(std::move(work));
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

void check_places(const std::vector<std::string>& places) {
  for (const std::string& place : places) {
    std::error_code unreadable;
    if (storage::is_uri(place)) {
      storage::open_storage(storage::parse_uri(place));  // throws if it never can be looked at
    } else if (!fs::is_directory(place, unreadable)) {
      throw NotFound("there is no directory " + place);
    }
  }
}

// Opens an address in the user's browser. It stands in a file that only the user may read, and not on the command line,
// which everybody may.
class OpenedPage {
 public:
  explicit OpenedPage(const std::string& address) : folder_("cadre-dashboard-") {
    const fs::path file = folder_.path() / "dashboard.html";
    base::replace_private_file(file, fmt::format("<!doctype html>\n<meta charset=\"utf-8\"><meta name=\"referrer\" "
                                                 "content=\"no-referrer\"><meta http-equiv=\"refresh\" content=\"0; "
                                                 "url={0}\">\n<a href=\"{0}\">The dashboard</a>\n",
                                                 address));
    const base::FileDescriptor null(::open("/dev/null", O_RDWR | O_CLOEXEC));
    // A group of its own: Ctrl-C ends the dashboard and not the browser.
    const base::Spawned browser = base::spawn(
        {.command = {"xdg-open", file.string()},
         .descriptors = {{null.get(), STDIN_FILENO}, {null.get(), STDOUT_FILENO}, {null.get(), STDERR_FILENO}},
         .in_own_group = true});
    if (browser.error != 0)
      fmt::print(stderr, "cadre: cannot open a browser: xdg-open: {}. Open the address yourself\n",
                 std::strerror(browser.error));
  }

 private:
  base::TemporaryFolder folder_;
};

// Works in a thread of its own. `stop` has `work` return.
class BackgroundThread {
 public:
  BackgroundThread(std::function<void()> work, std::function<void()> stop) : stop_(std::move(stop)) {
    thread_ = thread_without_signals([this, work = std::move(work)] {
      work();
      ended_.set_value();
    });
  }
  BackgroundThread(const BackgroundThread&) = delete;
  BackgroundThread& operator=(const BackgroundThread&) = delete;
  // A large store, or a storage that does not answer, is not waited for.
  ~BackgroundThread() {
    stop_();
    if (has_ended_.wait_for(kLongestEnd) != std::future_status::ready) ::_exit(0);
    thread_.join();
  }

 private:
  std::function<void()> stop_;
  std::promise<void> ended_ = {};
  std::future<void> has_ended_ = ended_.get_future();
  std::thread thread_ = {};
};

void run(DashboardOptions& options) {
  std::packaged_task<void()> check([&] { check_places(options.places); });
  thread_without_signals([&] { check(); }).join();
  check.get_future().get();
  if (options.places.empty()) options.places.push_back(store::default_storage_path().string());
  const std::string token =
      options.token_file.empty() ? dashboard::random_token() : dashboard::token_of_file(options.token_file);

  DashboardExperiments experiments(options.places);
  http::Server* server_of_board = nullptr;
  dashboard::Board board(dashboard::random_token().substr(0, 8), [&] { server_of_board->wake(); });
  DashboardControls controls;
  dashboard::ControlQueue requests(controls, [&] { server_of_board->wake(); });
  dashboard::Site site(token, board, options.allow_control ? &requests : nullptr);
  http::Server server({.address = options.address,
                       .port = static_cast<std::uint16_t>(options.port),
                       .headers = dashboard::common_headers()},
                      [&](const http::Request& request) { return site.handle(request); });
  server_of_board = &server;
  dashboard::Reader reader(board, experiments,
                           {.interval = std::chrono::milliseconds(std::llround(options.interval * 1000))});
  const std::string address =
      fmt::format("http://{}:{}/{}/", options.address == "::1" ? "[::1]" : options.address, server.port(), token);
  fmt::print("{}\n", address);
  std::fflush(stdout);
  fmt::print(stderr,
             "cadre: the dashboard is at this address until Ctrl-C. Whoever knows it on this machine sees it{}\n",
             options.allow_control ? ", and can stop, pause and enqueue" : "");
  std::optional<OpenedPage> opened;
  if (options.open) opened.emplace(address);
  const BackgroundThread reading([&] { reader.run(); }, [&] { board.stop(); });
  std::optional<BackgroundThread> controlling;
  if (options.allow_control) controlling.emplace([&] { requests.run(); }, [&] { requests.stop(); });
  server.run();
}

}  // namespace

void add_dashboard(Command& program) {
  const auto options = std::make_shared<DashboardOptions>();
  Command command = program.add_command("dashboard", "Serve pages that show experiments live");
  command.option("places", &options->places, "Directories or URIs [~/cadre_results]");
  command.option("--port", &options->port, "[a free one]").in_range(1, 65535);
  command.option("--address", &options->address, "The loopback address").one_of({"127.0.0.1", "::1"}).show_default();
  command.option("--token-file", &options->token_file,
                 "Keeps the secret of the address in a file, so that\n"
                 "with --port the address stays the same");
  command.option("--interval", &options->interval, "Seconds between two looks at the files")
      .in_range(0.1, 3600)
      .show_default();
  command.flag("--allow-control", &options->allow_control,
               "Pages can stop, pause, resume and enqueue what\n"
               "runs in directories, as cadre stop and others do");
  command.flag("--open", &options->open, "Open the page in a browser");
  command.footer(
      "Prints the address, which only this machine can reach, and serves until\n"
      "Ctrl-C. It reads as `cadre show` does, and changes nothing without\n"
      "--allow-control. From another machine: ssh -L 8000:127.0.0.1:PORT MACHINE, and\n"
      "the address with port 8000.");
  command.on_call([options] { run(*options); });
}

}  // namespace cadre::cli
