#include "data/files.h"

#include <arrow/buffer_builder.h>
#include <arrow/filesystem/localfs.h>
#include <arrow/io/compressed.h>
#include <arrow/util/compression.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fnmatch.h>

#include <algorithm>
#include <cctype>
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

std::string lower_case(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
  return lower;
}

// Chooses files of folders by the endings of their names.
struct FileChoice {
  std::vector<std::string> endings = {};  // in lower case if it is ignored; none: all files
  bool ignores_case = false;

  bool fits(const std::string& path) const {
    const std::string name = ignores_case ? lower_case(path) : path;
    return endings.empty() || std::ranges::any_of(endings, [&](const auto& ending) { return name.ends_with(ending); });
  }
};

void add_folder(const Place& place, const FileChoice& choice, std::vector<InputFile>& files) {
  for (const auto& info : list_folder(place, place.path)) {
    if (choice.fits(info.path()) && !is_hidden_below(info.path(), place.path))
      files.push_back(to_input(place, info, place.path));
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
  if (uri.scheme == "abfs") return storage::azure_file_system(uri, location);
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

namespace {

arrow::Compression::type compression_of(const std::string& path) {
  constexpr std::pair<std::string_view, arrow::Compression::type> kEndings[] = {
      {".gz", arrow::Compression::GZIP},
      {".zst", arrow::Compression::ZSTD},
      {".bz2", arrow::Compression::BZ2},
      {".lz4", arrow::Compression::LZ4_FRAME},
  };
  for (const auto& [ending, compression] : kEndings) {
    if (path.ends_with(ending)) return compression;
  }
  return arrow::Compression::UNCOMPRESSED;
}

}  // namespace

bool InputFile::is_compressed() const { return compression_of(path) != arrow::Compression::UNCOMPRESSED; }

std::shared_ptr<arrow::io::InputStream> InputFile::open_stream() const {
  if (!is_compressed()) return open();
  const std::string doing = "cannot decompress " + shown;
  const std::shared_ptr codec = checked(arrow::util::Codec::Create(compression_of(path)), doing);
  auto stream = checked(arrow::io::CompressedInputStream::Make(codec.get(), open()), doing);
  // The stream does not keep its codec alive.
  return {stream.get(), [codec, stream](const void*) {}};
}

std::shared_ptr<arrow::Buffer> read_up_to(arrow::io::InputStream& stream, std::int64_t bytes,
                                          const std::string& doing) {
  constexpr std::int64_t kPartBytes = std::int64_t{16} << 20;
  if (bytes <= kPartBytes) return checked(stream.Read(bytes), doing);
  arrow::BufferBuilder all;
  while (all.length() < bytes) {
    const auto part = checked(stream.Read(std::min(kPartBytes, bytes - all.length())), doing);
    if (part->size() == 0) break;
    check(all.Append(part->data(), part->size()), doing);
  }
  return checked(all.Finish(), doing);
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
      return {".json",      ".jsonl",     ".ndjson",     ".json.gz",    ".json.zst",
              ".json.bz2",  ".json.lz4",  ".jsonl.gz",   ".jsonl.zst",  ".jsonl.bz2",
              ".jsonl.lz4", ".ndjson.gz", ".ndjson.zst", ".ndjson.bz2", ".ndjson.lz4"};
    case ReadFiles::Format::images:
    case ReadFiles::Format::binary_files:
    case ReadFiles::Format::text:
    case ReadFiles::Format::numpy:
    case ReadFiles::Format::tf_records:
    case ReadFiles::Format::webdataset:
      break;
  }
  return {};
}

namespace {

// Adds the files that a path leads to. Returns why there are none; empty: there are some.
std::string add_files(const std::string& path, const FileChoice& choice, std::vector<InputFile>& files) {
  Place place = place_of(path);
  while (place.path.size() > 1 && place.path.ends_with('/')) place.path.pop_back();
  const std::string shown = place.prefix + place.path;
  const std::size_t before = files.size();
  const auto info = checked(place.file_system->GetFileInfo(place.path), "cannot look at " + shown);
  if (info.IsFile()) {
    files.push_back(to_input(place, info));
  } else if (info.IsDirectory()) {
    add_folder(place, choice, files);
    if (files.size() == before && choice.endings.empty()) return fmt::format("the folder {} has no files", shown);
    if (files.size() == before)
      return fmt::format("the folder {} has no files that end with {}", shown, fmt::join(choice.endings, ", "));
  } else if (is_pattern(place.path)) {
    add_matches(place, files);
    if (files.size() == before) return fmt::format("no file matches {}", shown);
  } else {
    return fmt::format("there is no file or folder {}", shown);
  }
  return "";
}

}  // namespace

std::vector<InputFile> find_files(const Names& paths, const std::vector<std::string_view>& endings) {
  const FileChoice choice{{endings.begin(), endings.end()}};
  std::vector<InputFile> files;
  for (const std::string& path : paths) {
    if (const std::string fault = add_files(path, choice, files); !fault.empty()) throw NotFound(fault);
  }
  return files;
}

std::vector<InputFile> find_files(const ReadFiles& read) {
  if (!read.endings) return find_files(read.paths, endings_of(read.format));
  FileChoice choice{.ignores_case = true};
  for (const std::string& ending : *read.endings)
    choice.endings.push_back((ending.starts_with('.') ? "" : ".") + lower_case(ending));
  std::vector<InputFile> files;
  std::string fault;
  for (const std::string& path : read.paths) {
    fault = add_files(path, choice, files);
    if (!fault.empty() && !read.ignore_missing_paths) throw NotFound(fault);
  }
  if (files.empty()) throw NotFound(fault);
  return files;
}

}  // namespace cadre::data
