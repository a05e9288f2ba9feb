#include "publish/uploads.h"

#include <algorithm>
#include <exception>
#include <mutex>
#include <thread>

#include "cadre/error.h"
#include "checkpoint/checkpoint_files.h"

namespace cadre::publish {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t kThreads = 4;

std::optional<Uploaded> upload(storage::Storage& storage, const Upload& what, Unreadable unreadable) {
  try {
    if (!what.expected) return Uploaded{.contents = storage.upload(what.file, what.name)};
    return Uploaded{.version = storage.upload_if(what.file, what.name, *what.expected).value_or(storage::Version())};
  } catch (const storage::StorageFault&) {
    throw;
  } catch (const StorageError&) {
    if (unreadable == Unreadable::fail) throw;
    return std::nullopt;
  }
}

}  // namespace

std::vector<std::optional<Uploaded>> upload_all(storage::Storage& storage, const std::vector<Upload>& uploads,
                                                const std::atomic<bool>& stop, Unreadable unreadable) {
  std::vector<std::optional<Uploaded>> uploaded(uploads.size());
  std::atomic<std::size_t> next = 0;
  std::atomic<bool> failed = false;
  std::mutex mutex;
  std::exception_ptr failure;
  const auto work = [&] {
    for (std::size_t i = next++; i < uploads.size() && !failed && !stop; i = next++) {
      try {
        uploaded[i] = upload(storage, uploads[i], unreadable);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!failed.exchange(true)) failure = std::current_exception();
      }
    }
  };
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 1; i < std::min(kThreads, uploads.size()); ++i) threads.emplace_back(work);
    work();
  }
  if (failure) std::rethrow_exception(failure);
  if (stop) throw Interrupted("an upload was given up");
  return uploaded;
}

Dict upload_directory(storage::Storage& storage, const fs::path& directory, const std::string& name,
                      const std::atomic<bool>& stop) {
  std::vector<Upload> uploads;
  std::vector<std::string> names;
  for (const auto& [file, listed] : checkpoint::list_files(directory)) {
    uploads.push_back({directory / file, name + "/" + file});
    names.push_back(file);
  }
  const auto uploaded = upload_all(storage, uploads, stop, Unreadable::fail);
  Dict files;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const storage::Contents& contents = uploaded[i]->contents;
    files.emplace_back(names[i], Dict{{"size", contents.size}, {"xxh3", storage::checksum_text(contents)}});
  }
  return files;
}

}  // namespace cadre::publish
