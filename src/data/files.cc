#include "data/files.h"

#include <arrow/filesystem/localfs.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fnmatch.h>

#include <algorithm>
#include <filesystem>
#include <ranges>
#include <utility>

#include "cadre/error.h"
#include "data/arrow_status.h"
#include "object_storage/azure_file_system.h"
#include "object_storage/s3.h"
#include "storage/uri.h"

namespace cadre::data {
namespace fs = std::filesystem;
namespace {

bool is_pattern(std::string_view path) { return path.find_first_of("*?[") != path.npos; }

// Returns true if the file, or a folder between `folder` and the file, is hidden.
bool is_hidden_below(std::string_view path, std::string_view folder) {
  const std::string_view below = path.substr(std::min(folder.size(), path.size()));
  return std::ranges::any_of(below | std::views::split('/'),
                             [](auto&& part) { return is_hidden(std::string_view(part.begin(), part.end())); });
}

// Makes an input of a file that was found in `folder`; empty: the file itself was named.
InputFile to_input(const Place& place, const arrow::fs::FileInfo& info, std::string_view folder = "") {
  return {.file_system = place.file_system,
          .path = info.path(),
          .shown = place.prefix + info.path(),
          .asked = info.path().substr(std::min(folder.size(), info.path().size())),
          .size = info.size(),
          .is_remote = place.is_remote};
}

std::vector<arrow::fs::FileInfo> list_folder(const Place& place, const std::string& folder) {
  arrow::fs::FileSelector selector;
  selector.base_dir = folder;
  selector.recursive = true;
  auto infos = checked(place.file_system->GetFileInfo(selector), "cannot list " + place.prefix + folder);
  std::erase_if(infos, [](const auto& info) { return !info.IsFile(); });
  std::ranges::sort(infos, {}, [](const auto& info) { return info.path(); });
  return infos;
}

void add_folder(const Place& place, const std::vector<std::string_view>& endings, std::vector<InputFile>& files) {
  for (const auto& info : list_folder(place, place.path)) {
    const bool fits =
        std::ranges::any_of(endings, [&](std::string_view ending) { return info.path().ends_with(ending); });
    if (fits && !is_hidden_below(info.path(), place.path)) files.push_back(to_input(place, info, place.path));
  }
}

void add_matches(const Place& place, std::vector<InputFile>& files) {
  const std::string folder = place.path.substr(0, place.path.rfind('/', place.path.find_first_of("*?[")));
  const auto info = checked(place.file_system->GetFileInfo(folder), "cannot look at " + place.prefix + folder);
  if (!info.IsDirectory()) return;
  for (const auto& file : list_folder(place, folder)) {
    if (::fnmatch(place.path.c_str(), file.path().c_str(), FNM_PATHNAME | FNM_PERIOD) == 0)
      files.push_back(to_input(place, file, folder));
  }
}

}  // namespace

bool is_hidden(std::string_view name) { return name.starts_with('.') || name.starts_with('_'); }

namespace {

arrow::Result<std::shared_ptr<arrow::fs::FileSystem>> file_system_of(const storage::Uri& uri, std::string* location) {
  if (uri.scheme == "s3") {
    storage::load_s3();
    auto file_system = arrow::fs::FileSystemFromUri(storage::to_s3_uri(uri), location);
    storage::finish_s3_at_exit(file_system.ok());
    return file_system;
  }
#ifdef ARROW_AZURE
  if (uri.scheme == "abfs" || uri.scheme == "abfss") return storage::azure_file_system(uri, location);
#endif
  return arrow::fs::FileSystemFromUri(storage::to_string(uri), location);
}

}  // namespace

Place place_of(const std::string& path) {
  if (!storage::is_uri(path)) return {std::make_shared<arrow::fs::LocalFileSystem>(), path, "", false};
  const storage::Uri uri = storage::parse_uri(path);
  if (uri.scheme == "file") return {std::make_shared<arrow::fs::LocalFileSystem>(), uri.location, "", false};
  std::string location;
  auto file_system = file_system_of(uri, &location);
  if (!file_system.ok())
    throw InvalidArgument(fmt::format("cannot use {}: {}", storage::shown(uri), file_system.status().message()));
  return {*std::move(file_system), std::move(location), uri.scheme + "://", true};
}

std::shared_ptr<arrow::io::RandomAccessFile> InputFile::open() const {
  arrow::fs::FileInfo info(path, arrow::fs::FileType::File);
  info.set_size(size);  // saves a request for the size
  return checked(file_system->OpenInputFile(info), "cannot open " + shown);
}

std::string to_plan_path(const std::string& path) {
  if (path.empty()) throw InvalidArgument("a path of a dataset is empty");
  if (storage::is_uri(path)) return storage::to_string(storage::parse_uri(path));
  return fs::absolute(path).lexically_normal();
}

std::vector<std::string_view> endings_of(ReadFiles::Format format) {
  switch (format) {
    case ReadFiles::Format::parquet:
      return {".parquet"};
    case ReadFiles::Format::csv:
      return {".csv", ".csv.gz", ".csv.zst", ".csv.bz2", ".csv.lz4"};
    case ReadFiles::Format::json:
      break;
  }
  return {".json",      ".jsonl",     ".ndjson",     ".json.gz",    ".json.zst",
          ".json.bz2",  ".json.lz4",  ".jsonl.gz",   ".jsonl.zst",  ".jsonl.bz2",
          ".jsonl.lz4", ".ndjson.gz", ".ndjson.zst", ".ndjson.bz2", ".ndjson.lz4"};
}

std::vector<InputFile> find_files(const Names& paths, const std::vector<std::string_view>& endings) {
  std::vector<InputFile> files;
  for (const std::string& path : paths) {
    Place place = place_of(path);
    while (place.path.size() > 1 && place.path.ends_with('/')) place.path.pop_back();
    const std::string shown = place.prefix + place.path;
    const std::size_t before = files.size();
    const auto info = checked(place.file_system->GetFileInfo(place.path), "cannot look at " + shown);
    if (info.IsFile()) {
      files.push_back(to_input(place, info));
    } else if (info.IsDirectory()) {
      add_folder(place, endings, files);
      if (files.size() == before)
        throw NotFound(fmt::format("the folder {} has no files that end with {}", shown, fmt::join(endings, ", ")));
    } else if (is_pattern(place.path)) {
      add_matches(place, files);
      if (files.size() == before) throw NotFound(fmt::format("no file matches {}", shown));
    } else {
      throw NotFound(fmt::format("there is no file or folder {}", shown));
    }
  }
  return files;
}

}  // namespace cadre::data
