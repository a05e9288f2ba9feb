#include "checkpoint/checkpoint_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <span>
#include <utility>

#include "base/checksum.h"
#include "base/directory.h"
#include "base/file.h"
#include "base/inner_path.h"
#include "base/json.h"
#include "base/system_error.h"
#include "cadre/error.h"
#include "storage/remote_directory.h"

namespace cadre::checkpoint {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kCommittedPrefix = "checkpoint_";
constexpr std::string_view kReportingPrefix = ".reporting_";
constexpr std::string_view kCopy = "copy_";
constexpr std::string_view kSetAside = ".reporting_removed_";
constexpr int kMetadataFormat = 2;
constexpr std::size_t kBufferBytes = std::size_t{1} << 20;

base::ReadableFile open_to_read(const fs::path& path) {
  auto file = base::ReadableFile::open(path, base::ReadableFile::Links::refuse);
  if (!file) throw StorageError(path.string() + " is not there");
  return std::move(*file);
}

std::string checksum_of(const base::ReadableFile& file) {
  base::Checksum checksum;
  const auto buffer = std::make_unique_for_overwrite<char[]>(kBufferBytes);
  const std::span<char> chunk(buffer.get(), kBufferBytes);
  for (std::uint64_t offset = 0;;) {
    const std::size_t got = file.read(offset, std::as_writable_bytes(chunk));
    checksum.add({chunk.data(), got});
    if (got < chunk.size()) return fmt::format("{:016x}", checksum.value());
    offset += got;
  }
}

void list_into(Dict& files, const fs::path& directory, const std::string& prefix, bool seal) {
  for (const std::string& name : base::list_directory(directory)) {
    const fs::path path = directory / name;
    const base::FileInfo info = base::info_of(path);
    if (info.kind == base::FileInfo::Kind::directory) {
      list_into(files, path, prefix + name + "/", seal);
      continue;
    }
    if (info.kind != base::FileInfo::Kind::file)
      throw StorageError(path.string() + " is neither a file nor a directory; a checkpoint holds nothing else");
    Dict entry{{"size", info.size}};
    if (seal) {
      const base::ReadableFile file = open_to_read(path);
      file.sync();
      entry.emplace_back("xxh3", checksum_of(file));
    }
    files.emplace_back(prefix + name, std::move(entry));
  }
  if (seal) base::sync_directory(directory);
}

std::string fault_of_file(const fs::path& path, const Config& listed, bool contents) {
  const base::ReadableFile file = open_to_read(path);
  const auto size = static_cast<std::int64_t>(file.size());
  if (size != listed.get<std::int64_t>("size"))
    return fmt::format("{} has {} bytes instead of {}", path.string(), size, listed.get<std::int64_t>("size"));
  if (!contents || !listed.contains("xxh3")) return {};
  if (checksum_of(file) == listed.get<std::string>("xxh3")) return {};
  return path.string() + " has other contents than when it was written";
}

}  // namespace

std::string checkpoint_name(std::int64_t number) { return fmt::format("{}{:06d}", kCommittedPrefix, number); }

std::string reporting_prefix(std::int64_t attempt) { return fmt::format("{}{}_", kReportingPrefix, attempt); }

std::string copy_name(std::int64_t number, std::int64_t rank) {
  return fmt::format("{}{}{}_{}", kReportingPrefix, kCopy, number, rank);
}

bool is_reporting_name(std::string_view name) {
  return name.starts_with(kReportingPrefix) && name.find('/') == name.npos;
}

StoredName stored_name(const std::string& reported) {
  std::string_view rest = reported;
  if (is_reporting_name(reported)) rest.remove_prefix(kReportingPrefix.size());
  StoredName name;
  if (rest.starts_with(kCopy)) {
    rest.remove_prefix(kCopy.size());
    if (const std::size_t rank = rest.find('_'); rank != rest.npos) {
      name.part = rest.substr(rank + 1);
      rest = rest.substr(0, rank);
    }
  }
  name.directory = std::string(kCommittedPrefix) + std::string(rest);
  return name;
}

bool is_name_of_checkpoint(std::string_view name) {
  if (name.starts_with(kReportingPrefix)) return true;
  if (!name.starts_with(kCommittedPrefix)) return false;
  const std::string_view number = name.substr(kCommittedPrefix.size());
  return !number.empty() && number.find_first_not_of("0123456789_") == number.npos;
}

void write_metadata(const fs::path& directory, const CheckpointMetadata& metadata) {
  Dict files = list_files(directory);
  // Leave out older metadata, from the checkpoint that this one is a copy of, or from a try when the disk was full.
  std::erase_if(files, [](const auto& file) { return file.first == kMetadataName; });
  Dict content{{"format", kMetadataFormat},
               {"trial_id", metadata.trial_id},
               {"training_iteration", metadata.training_iteration},
               {"timestamp", metadata.timestamp},
               {"files", std::move(files)}};
  if (!metadata.directory.empty()) content.emplace_back("directory", metadata.directory);
  base::write_file(directory / kMetadataName, base::to_pretty_json(content));
}

void link_checkpoint(const fs::path& from, const fs::path& to) {
  base::link_tree(from, to);
  base::remove_tree(to / kMetadataName);  // shared with the other checkpoint, it must not be overwritten
}

void commit_directory(const fs::path& root, const std::string& reported, const std::string& committed) {
  std::error_code unreadable;
  if (base::rename_inside(root, {reported, "a report"}, {committed, "a report"})) return;
  if (fs::is_directory(root / committed, unreadable)) return;
  throw StorageError("cannot commit the checkpoint " + (root / committed).string() + ": " + (root / reported).string() +
                     " is gone");
}

void remove_directory(const fs::path& root, const base::InnerPath& directory) {
  if (!storage::is_in_transfer(root / directory)) base::remove_inside(root, directory);
}

std::string set_aside(const fs::path& root, const base::InnerPath& directory) {
  if (storage::is_in_transfer(root / directory)) return {};
  const fs::path path = directory.text();
  const std::string name = path.filename();
  if (name.starts_with(kSetAside)) return path;  // by a controller that was killed since
  const fs::path aside = path.parent_path() / (std::string(kSetAside) + name);
  try {
    return base::rename_inside(root, directory, {aside.native(), "a checkpoint's name"}) ? aside.native() : "";
  } catch (const StorageError&) {  // one of this name was set aside before, or the name is too long
    remove_directory(root, directory);
    return {};
  }
}

bool is_committed(const fs::path& directory) {
  std::error_code unusable;
  return fs::exists(fs::symlink_status(directory / kMetadataName, unusable)) ||
         fs::exists(fs::symlink_status(directory / storage::kRemoteFile, unusable));
}

bool was_to_be_committed(const fs::path& directory) {
  std::error_code unusable;
  if (fs::is_regular_file(fs::symlink_status(directory / storage::kRemoteFile, unusable))) return true;
  try {
    const auto file = base::ReadableFile::open(directory / kMetadataName, base::ReadableFile::Links::refuse);
    if (!file) return false;
    const Value metadata = base::parse_json(base::read_file(file->path()), file->path().string());
    return Config(metadata).get<std::string>("directory", "") == directory.filename();
  } catch (const Error&) {  // metadata of another program
    return false;
  }
}

Dict list_files(const fs::path& directory) {
  Dict files;
  list_into(files, directory, "", false);
  return files;
}

namespace {

void sync_parents(const fs::path& root, const fs::path& directory) {
  for (fs::path above = directory; !above.empty();) {
    above = above.parent_path();
    base::sync_directory(root / above);
  }
}

bool has_checksums(const Dict& files) {
  return std::ranges::all_of(files, [](const auto& file) { return Config(file.second.dict()).contains("xxh3"); });
}

// Several threads may be asked to seal one checkpoint; the first one does it.
Dict seal_in_place(const fs::path& root, const fs::path& directory) {
  static std::mutex sealing;
  const std::lock_guard lock(sealing);
  auto listed = storage::remote_files(root / directory);
  if (!listed) throw StorageError((root / directory).string() + " is not there");
  storage::Remote remote = *std::move(listed);
  if (has_checksums(remote.files)) return std::move(remote.files);
  const fs::path place = storage::directory_with_files(root / directory);
  if (place.empty()) return std::move(remote.files);
  remote.files.clear();
  list_into(remote.files, place, "", true);
  base::sync_directory(place.parent_path());
  storage::replace_list(root / directory, remote);  // fails if the checkpoint was removed meanwhile
  base::sync_tree(root / directory);
  return std::move(remote.files);
}

}  // namespace

Dict seal_files(const fs::path& root, const fs::path& directory) {
  Dict files;
  if (auto remote = storage::remote_files(root / directory)) {
    if (has_checksums(remote->files)) {
      base::sync_tree(root / directory);  // the list: its files are safe where they are
      files = std::move(remote->files);
    } else {
      files = seal_in_place(root, directory);
    }
  } else {
    list_into(files, root / directory, "", true);
  }
  sync_parents(root, directory);
  return files;
}

std::string fault_of_files(const fs::path& directory, const Dict& files, bool contents) {
  try {
    std::error_code unreadable;
    if (!fs::is_directory(directory, unreadable)) return directory.string() + " is not there";
    for (const auto& [name, listed] : files) {
      base::InnerPath(name, "the list of " + directory.string());
      std::string fault = fault_of_file(directory / name, Config(listed.dict()), contents);
      if (!fault.empty()) return fault;
    }
    return {};
  } catch (const base::OutOfResources&) {
    throw;
  } catch (const Error& error) {  // it cannot be read, or the list is invalid
    return error.what();
  }
}

namespace {

std::string fault_at_first_sight(const fs::path& experiment, const store::CheckpointRow& row, const std::string& boot,
                                 CheckDepth depth) {
  const fs::path directory = experiment / row.directory;
  try {
    if (storage::remote_files(directory)) return {};  // its files are compared when they are downloaded
  } catch (const base::OutOfResources&) {
    throw;
  } catch (const Error& error) {
    return error.what();
  }
  if (!row.synced && row.boot != boot) return "it was not yet on the disk when the machine was started again";
  if (depth == CheckDepth::directory) return fault_of_files(directory, {}, false);
  const fs::path metadata = directory / kMetadataName;
  const std::string source = row.synced ? "the manifest of " + row.directory : metadata.string();
  try {
    const Value listed = base::parse_json(row.synced ? row.manifest : base::read_file(metadata), source);
    return fault_of_files(directory, row.synced ? listed.dict() : Config(listed).get<Dict>("files"),
                          depth == CheckDepth::contents);
  } catch (const base::OutOfResources&) {
    throw;
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace

std::string fault_of_checkpoint(const fs::path& experiment, const store::CheckpointRow& row, const std::string& boot,
                                CheckDepth depth) {
  // Checks twice: a disk error may be transient, and a checkpoint that is given up is lost.
  const std::string fault = fault_at_first_sight(experiment, row, boot, depth);
  return fault.empty() ? fault : fault_at_first_sight(experiment, row, boot, depth);
}

}  // namespace cadre::checkpoint
