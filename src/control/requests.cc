#include "control/requests.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <random>
#include <thread>
#include <utility>

#include "base/directory.h"
#include "base/file.h"
#include "base/json.h"
#include "base/system_error.h"
#include "cadre/error.h"
#include "store/experiment_lock.h"

namespace cadre::control {
namespace fs = std::filesystem;
namespace {

constexpr const char* kRequestEnding = ".json";
constexpr const char* kAnswerEnding = ".answer";
constexpr std::size_t kMostBytes = 1 << 20;

double unix_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

bool is_own(const struct stat& status) { return status.st_uid == ::geteuid() || status.st_uid == 0; }

// Returns true for a folder in which nobody but this process's user, or root, can make a file.
bool is_own_folder(const fs::path& path) {
  struct stat status{};
  return ::lstat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode) && is_own(status) &&
         (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

bool is_own_file(const fs::path& path) {
  struct stat status{};
  return ::lstat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) && is_own(status) &&
         std::cmp_less_equal(status.st_size, kMostBytes);
}

// Makes the folder, which belongs to whom the run's directory does, also if root makes it.
void make_folder(const fs::path& run, const fs::path& folder) {
  if (!base::make_own_directory(folder)) return;
  struct stat status{};
  if (::stat(run.c_str(), &status) != 0 || ::chmod(folder.c_str(), S_IRWXU) != 0 ||
      (::geteuid() == 0 && ::chown(folder.c_str(), status.st_uid, status.st_gid) != 0))
    base::throw_storage_error("make", folder);
}

}  // namespace

std::vector<Requests::Request> Requests::take() {
  std::vector<Request> taken;
  if (!is_own_folder(folder_)) return taken;
  std::error_code none;
  std::vector<std::pair<fs::file_time_type, fs::path>> files;
  const fs::file_time_type long_ago = fs::file_time_type::clock::now() - kAnswersStay;
  for (fs::directory_iterator entry(folder_, none), end; !none && entry != end; entry.increment(none)) {
    std::error_code gone;
    const fs::path& path = entry->path();
    const fs::file_time_type written = entry->last_write_time(gone);
    if (gone) continue;
    if (path.extension() == kRequestEnding) files.emplace_back(written, path);
    if (path.extension() == kAnswerEnding && written < long_ago) fs::remove(path, gone);
  }
  std::ranges::sort(files);
  for (const auto& [time, path] : files) {
    if (!is_own_file(path)) continue;
    const std::string id = path.stem();
    try {
      const std::string text = base::read_file(path);
      std::error_code kept;
      if (!fs::remove(path, kept)) continue;  // it would come again and again
      const Config request(base::parse_json(text, "the request").dict());
      if (request.get<double>("until") < unix_time()) {
        answer(id, "it has come too late");
        continue;
      }
      taken.push_back({id, request.get<Dict>("request")});
    } catch (const Error& error) {
      answer(id, error.what());
    }
  }
  return taken;
}

void Requests::answer(const std::string& id, const std::string& error) {
  try {
    base::replace_file(folder_ / (id + kAnswerEnding), to_json(Dict{{"error", error}}));
  } catch (const Error&) {  // the disk is full: whoever asked waits in vain, and is told so
  }
}

PendingRequest::PendingRequest(fs::path directory, const Dict& content, std::chrono::milliseconds patience)
    : directory_(std::move(directory)) {
  if (!is_running())
    throw NotFound(fmt::format("nothing runs in {}: only what runs can be asked for something", directory_.string()));
  const fs::path folder = directory_ / Requests::kFolder;
  make_folder(directory_, folder);
  const std::string id = fmt::format("{}_{:08x}", ::getpid(), std::random_device()());
  request_ = folder / (id + kRequestEnding);
  answer_ = folder / (id + kAnswerEnding);
  until_ = unix_time() + std::chrono::duration<double>(patience).count();
  base::replace_file(request_, to_json(Dict{{"request", content}, {"until", until_}}));
}

PendingRequest::~PendingRequest() {
  std::error_code taken;
  fs::remove(request_, taken);
}

bool PendingRequest::is_running() const { return store::ExperimentLock::holder(directory_).has_value(); }

bool PendingRequest::is_answered() {
  std::error_code missing;
  if (!fs::exists(answer_, missing)) {
    const bool is_late = unix_time() > until_;
    if (!is_late && is_running()) return false;
    if (!fs::exists(answer_, missing)) {
      const bool was_taken = !fs::remove(request_, missing);
      throw StorageError(
          fmt::format("{} in {}, and has not answered; {}",
                      is_late ? "the controller is busy" : "the controller has ended", directory_.string(),
                      was_taken ? "it may have done what was asked: cadre show tells" : "nothing was changed"));
    }
  }
  const Config answered(base::parse_json(base::read_file(answer_), answer_.string()).dict());
  fs::remove(answer_, missing);
  if (const auto error = answered.get<std::string>("error"); !error.empty()) throw InvalidArgument(error);
  return true;
}

void PendingRequest::wait() {
  while (!is_answered()) std::this_thread::sleep_for(kPeriod);
}

void ask_controller(const fs::path& directory, const Dict& content, std::chrono::milliseconds patience) {
  PendingRequest(directory, content, patience).wait();
}

}  // namespace cadre::control
