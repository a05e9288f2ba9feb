#include "storage/remote_directory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <set>

#include "base/directory.h"
#include "base/file.h"
#include "base/file_descriptor.h"
#include "base/inner_path.h"
#include "base/json.h"
#include "base/system_error.h"
#include "cadre/stored.h"
#include "storage/retry.h"

namespace cadre::storage {
namespace fs = std::filesystem;
namespace {

struct PublishedTo {
  std::int64_t format = 1;
  std::string uri = {};
};

struct RemoteList {
  std::int64_t format = 3;
  Dict files = {};
  std::string place = {};
};
// A list with files that are in parts.
struct RemoteListWithParts {
  std::int64_t format = 4;
  Dict files = {};
  std::string place = {};
};

template <class Document>
Document read_document(const fs::path& path) {
  const Value stored = base::parse_json(base::read_file(path), path.string());
  return cadre::reading(path.string(), [&] { return cadre::document_from_value<Document>(stored); });
}

template <class List>
Remote to_remote(const Value& stored) {
  auto list = cadre::document_from_value<List>(stored);
  return {.files = std::move(list.files), .place = std::move(list.place)};
}

std::string part_of(const Value& listed) { return Config(listed.dict()).get<std::string>("part", ""); }

void check(const Remote& remote, const std::string& source) {
  check_list(remote.files, source);
  if (!remote.place.empty()) base::InnerPath(remote.place, source);
}

// `names` and `own` end with a slash.
bool has_file_above(const std::set<std::string>& names, const std::string& own) {
  for (std::size_t at = own.find('/'); at != own.npos; at = own.find('/', at + 1)) {
    if (names.contains(own.substr(0, at + 1))) return true;
  }
  return false;
}

// For a directory's name with another purpose.
struct Beside {
  std::string purpose;
  std::int64_t process = 0;
  std::string directory;  // the name
};

constexpr std::string_view kBesidePrefix = ".reporting_";
constexpr const char* kFetch = "fetch";
constexpr const char* kRemote = "remote";
constexpr const char* kExchange = "exchange";

// Returns a temporary name in the parent directory; a restore removes such names.
fs::path beside(const fs::path& directory, const char* purpose) {
  return directory.parent_path() /
         fmt::format("{}{}_{}_{}", kBesidePrefix, purpose, ::getpid(), directory.filename().string());
}

// Returns what beside() was called with; empty if the name is none of its.
std::optional<Beside> parse_beside(std::string_view name) {
  if (!name.starts_with(kBesidePrefix)) return std::nullopt;
  name.remove_prefix(kBesidePrefix.size());
  const std::size_t purpose_end = name.find('_');
  const std::size_t process_end = purpose_end == name.npos ? name.npos : name.find('_', purpose_end + 1);
  if (process_end == name.npos) return std::nullopt;
  Beside parsed{.purpose = std::string(name.substr(0, purpose_end)),
                .directory = std::string(name.substr(process_end + 1))};
  const std::string_view process = name.substr(purpose_end + 1, process_end - purpose_end - 1);
  const auto [end, error] = std::from_chars(process.data(), process.data() + process.size(), parsed.process);
  const bool is_known = parsed.purpose == kFetch || parsed.purpose == kRemote || parsed.purpose == kExchange;
  if (!is_known || error != std::errc() || end != process.data() + process.size()) return std::nullopt;
  return parsed;
}

// Returns true if a process downloads the files that a directory lists.
bool is_being_fetched(const fs::path& directory) {
  // Somebody else may have put a link or a pipe there, which would block.
  const base::FileDescriptor list(
      ::open((directory / kRemoteFile).c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  return list && ::flock(list.get(), LOCK_SH | LOCK_NB) != 0;
}

// Exchanges two existing directories. If the file system cannot exchange names, `a` is missing for an instant.
void exchange(const fs::path& a, const fs::path& b) {
  if (::renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE) == 0) return;
  if (errno != EINVAL && errno != ENOSYS) base::throw_storage_error("exchange", a);
  const fs::path between = beside(a, kExchange);
  base::rename(a, between);
  base::rename(b, a);
  base::rename(between, b);
}

// The storage of the working directory that contains a path, and the path's name in that storage.
struct Place {
  Uri uri;
  std::string name;
};
std::optional<Place> place_of(const fs::path& path) {
  const fs::path whole = fs::absolute(path).lexically_normal();
  for (fs::path above = whole; above.has_relative_path(); above = above.parent_path()) {
    if (auto uri = published_to(above)) return Place{*std::move(uri), whole.lexically_relative(above).string()};
  }
  return std::nullopt;
}

}  // namespace

void write_published_to(const fs::path& working_directory, const Uri& uri) {
  base::replace_file_durably(working_directory / kPublishedToFile,
                             base::to_pretty_json(cadre::to_stored(PublishedTo{.uri = to_string(uri)}).dict()));
}

std::optional<Uri> published_to(const fs::path& working_directory) {
  const fs::path path = working_directory / kPublishedToFile;
  std::error_code unreadable;
  if (!fs::exists(path, unreadable)) return std::nullopt;
  return cadre::reading(path.string(), [&] { return parse_uri(read_document<PublishedTo>(path).uri); });
}

std::optional<Uri> published_place(const fs::path& path) {
  const auto place = place_of(path);
  if (!place) return std::nullopt;
  if (const auto remote = remote_files(path); remote && !remote->place.empty()) return place->uri / remote->place;
  return place->name == "." ? place->uri : place->uri / place->name;
}

void check_list(const Dict& files, const std::string& source) {
  for (const auto& [name, file] : files) {
    base::InnerPath(name, source);
    const std::string part = cadre::reading(source, [&file] { return part_of(file); });
    if (!part.empty()) base::InnerPath(part, source);
  }
}

Dict in_part(Dict files, const std::string& part) {
  if (part.empty()) return files;
  for (auto& [name, file] : files) {
    Dict entry = file.dict();
    entry.emplace_back("part", part);
    file = std::move(entry);
  }
  return files;
}

void add_files(Dict& files, const Dict& others) {
  std::set<std::string> names;  // with a slash at the end, so that what is below one follows it
  for (const auto& [name, file] : files) names.insert(name + "/");
  for (const auto& [name, file] : others) {
    const std::string own = name + "/";
    const auto next = names.lower_bound(own);
    const bool is_in_the_way = (next != names.end() && next->starts_with(own)) || has_file_above(names, own);
    if (!is_in_the_way) files.emplace_back(name, file);
  }
}

std::optional<Remote> remote_files(const fs::path& directory) {
  const fs::path path = directory / kRemoteFile;
  std::error_code unreadable;
  if (!fs::exists(path, unreadable)) return std::nullopt;
  const Value stored = base::parse_json(base::read_file(path), path.string());
  Remote remote = cadre::reading(path.string(), [&] {
    const bool has_parts = Config(stored.dict()).get<std::int64_t>("format", 0) == RemoteListWithParts().format;
    return has_parts ? to_remote<RemoteListWithParts>(stored) : to_remote<RemoteList>(stored);
  });
  check(remote, path.string());
  return remote;
}

fs::path directory_with_files(const fs::path& directory) {
  if (!remote_files(directory)) return directory;
  const auto uri = published_place(directory);
  return uri ? directory_of(*uri) : fs::path();
}

fs::path readable_file(const fs::path& path) {
  std::error_code missing;
  if (fs::is_regular_file(fs::symlink_status(path, missing))) return path;
  const auto place = place_of(path);
  const fs::path directory = place ? directory_of(place->uri) : fs::path();
  return directory.empty() ? path : directory / place->name;
}

void make_remote(const fs::path& directory, const Remote& remote) {
  check(remote, directory.string());  // the list may come from a segment
  std::error_code missing;
  if (fs::is_directory(fs::symlink_status(directory, missing)) && !fs::is_empty(directory, missing))
    return replace_list(directory, remote);
  const fs::path whole = beside(directory, kRemote);
  base::remove_tree(whole);
  try {
    base::make_directories(whole);
    replace_list(whole, remote);
    base::rename(whole, directory);
  } catch (...) {
    std::error_code ignored;
    fs::remove_all(whole, ignored);
    throw;
  }
}

void replace_list(const fs::path& directory, const Remote& remote) {
  const bool has_parts =
      std::ranges::any_of(remote.files, [](const auto& file) { return !part_of(file.second).empty(); });
  const Value list = has_parts ? cadre::to_stored(RemoteListWithParts{.files = remote.files, .place = remote.place})
                               : cadre::to_stored(RemoteList{.files = remote.files, .place = remote.place});
  base::replace_file(directory / kRemoteFile, base::to_json(list.dict()));
}

void replace_by_remote(const fs::path& directory, const Remote& remote) {
  check(remote, directory.string());
  const fs::path list = beside(directory, kRemote);
  base::remove_tree(list);
  try {
    base::make_directories(list);
    replace_list(list, remote);
    base::sync_tree(list);
    exchange(list, directory);
  } catch (...) {
    std::error_code ignored;
    fs::remove(list / kRemoteFile, ignored);
    fs::remove(list, ignored);  // fails if it holds the directory's files
    throw;
  }
  base::sync_directory(directory.parent_path());  // before the files are removed
  base::remove_tree(list);
}

void download_files(Storage& storage, const Uri& uri, const Dict& files, const std::string& name,
                    const fs::path& target, std::chrono::seconds patience) {
  for (const auto& [file, listed] : files) {
    const Config expected(listed.dict());
    base::make_directories((target / file).parent_path());
    const std::string part = part_of(listed);
    const std::string whole = part.empty() ? name + "/" + file : name + "/" + part + "/" + file;
    const Contents contents = with_patience(patience, [&, to = target / file] { return storage.download(whole, to); });
    if (contents.size != expected.get<std::int64_t>("size") ||
        (expected.contains("xxh3") && checksum_text(contents) != expected.get<std::string>("xxh3")))
      throw StorageError(shown(uri / whole) + " has other contents than when it was written");
  }
}

void download_remote(const fs::path& directory, const fs::path& target, std::chrono::seconds patience) {
  const auto remote = remote_files(directory);
  if (!remote) throw StorageError(directory.string() + " is not listed as one whose files are in a storage");
  const auto place = place_of(directory);
  if (!place)
    throw StorageError(fmt::format("the files of {} are in a storage, and no {} above it says in which",
                                   directory.string(), kPublishedToFile));
  download_files(*open_storage(place->uri), place->uri, remote->files, remote->place_of(place->name), target, patience);
}

void fetch(const fs::path& directory, std::chrono::seconds patience) {
  // The first process downloads while the others wait. The locked file is the list, which the download removes.
  base::FileDescriptor list(::open((directory / kRemoteFile).c_str(), O_RDONLY | O_CLOEXEC));
  if (!list) return;
  while (::flock(list.get(), LOCK_EX) != 0) {
    if (errno != EINTR) base::throw_storage_error("lock", directory / kRemoteFile);
  }
  if (!remote_files(directory)) return;
  const fs::path whole = beside(directory, kFetch);
  base::remove_tree(whole);
  base::make_directory(whole);
  try {
    download_remote(directory, whole, patience);
    base::sync_tree(whole);  // before the list, by which a loss of power would be noticed, is gone
    exchange(whole, directory);
  } catch (...) {
    std::error_code ignored;
    fs::remove_all(whole, ignored);
    throw;
  }
  base::sync_directory(directory.parent_path());  // before the list is removed
  base::remove_tree(whole);
}

bool is_in_transfer(const fs::path& directory) {
  const std::optional<Beside> parsed = parse_beside(directory.filename().string());
  if (!parsed) return false;
  if (parsed->process == ::getpid()) return true;
  if (parsed->purpose == kRemote) return false;  // made by the one controller only
  const fs::path other = directory.parent_path() / parsed->directory;
  // The list is in one of both until the download is complete and the list is removed.
  return is_being_fetched(directory) || is_being_fetched(other) || is_in_transfer(other);
}

}  // namespace cadre::storage
