#include "storage/uploads.h"

#include <algorithm>
#include <exception>
#include <functional>
#include <mutex>
#include <system_error>
#include <thread>

#include "cadre/error.h"
#include "storage/retry.h"

namespace cadre::storage {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t kThreads = 4;

// Calls `upload(i)` for i below `count`, a few at a time.
void upload_some(std::size_t count, const std::atomic<bool>& stop, const std::function<void(std::size_t)>& upload) {
  std::atomic<std::size_t> next = 0;
  std::atomic<bool> failed = false;
  std::mutex mutex;
  std::exception_ptr failure;
  const auto work = [&] {
    for (std::size_t i = next++; i < count && !failed && !stop; i = next++) {
      try {
        upload(i);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!failed.exchange(true)) failure = std::current_exception();
      }
    }
  };
  {
    std::vector<std::jthread> threads;
    try {
      for (std::size_t i = 1; i < std::min(kThreads, count); ++i) threads.emplace_back(work);
    } catch (const std::system_error&) {  // NOLINT(bugprone-empty-catch): those that are there do it, and this one
    }
    work();
  }
  if (failure) std::rethrow_exception(failure);
  if (stop) throw Interrupted("an upload was given up");
}

std::optional<Uploaded> upload_one(Storage& storage, const Upload& what, const std::atomic<bool>& stop,
                                   Unreadable unreadable) {
  const FileToUpload file(what.file, &stop);
  try {
    if (!what.expected) return Uploaded{.contents = storage.upload(file, what.name)};
    return Uploaded{.version = storage.upload_if(file, what.name, *what.expected).value_or(Version())};
  } catch (const StorageFault&) {
    throw;
  } catch (const StorageError&) {
    if (unreadable == Unreadable::fail) throw;
    return std::nullopt;
  }
}

}  // namespace

std::vector<std::optional<Uploaded>> upload_all(Storage& storage, const std::vector<Upload>& uploads,
                                                const std::atomic<bool>& stop, Unreadable unreadable) {
  std::vector<std::optional<Uploaded>> uploaded(uploads.size());
  upload_some(uploads.size(), stop,
              [&](std::size_t i) { uploaded[i] = upload_one(storage, uploads[i], stop, unreadable); });
  return uploaded;
}

Dict upload_files(Storage& storage, const fs::path& directory, const std::vector<std::string>& files,
                  const std::string& name, const std::atomic<bool>& stop,
                  std::chrono::steady_clock::duration patience) {
  std::vector<Contents> uploaded(files.size());
  upload_some(files.size(), stop, [&](std::size_t i) {
    const FileToUpload file(directory / files[i], &stop);
    uploaded[i] = with_patience(patience, [&] { return storage.upload(file, name + "/" + files[i]); });
  });
  Dict list;
  for (std::size_t i = 0; i < files.size(); ++i)
    list.emplace_back(files[i], Dict{{"size", uploaded[i].size}, {"xxh3", checksum_text(uploaded[i])}});
  return list;
}

}  // namespace cadre::storage
