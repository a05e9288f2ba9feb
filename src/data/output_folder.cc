#include "data/output_folder.h"

#include <arrow/filesystem/filesystem.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/directory.h"
#include "data/arrow_status.h"
#include "storage/uri.h"

namespace cadre::data {

OutputFolder::OutputFolder(const std::string& path) : given_(path), place_(data::place_of(path)) {
  while (place_.path.size() > 1 && place_.path.ends_with('/')) place_.path.pop_back();
  if (!place_.is_remote) base::make_directories(place_.path);
}

std::vector<std::string> OutputFolder::list() const {
  arrow::fs::FileSelector selector;
  selector.base_dir = place_.path;
  selector.allow_not_found = true;
  std::vector<std::string> names;
  for (const auto& info : checked(place_.file_system->GetFileInfo(selector), "cannot list " + shown())) {
    if (info.IsFile() && !is_hidden(info.base_name())) names.push_back(info.base_name());
  }
  std::ranges::sort(names);
  return names;
}

std::shared_ptr<arrow::io::OutputStream> OutputFolder::create(const std::string& name) const {
  return checked(place_.file_system->OpenOutputStream(place_of(name)), "cannot write " + shown(name));
}

void OutputFolder::publish(const std::string& name) const {
  if (place_.is_remote) return;
  check(place_.file_system->Move(place_of(name), place_.path + "/" + name), "cannot write " + shown(name));
}

void OutputFolder::remove(const std::string& name) const {
  for (const std::string& place : {place_of(name), place_.path + "/" + name}) {
    const auto info = place_.file_system->GetFileInfo(place);
    if (info.ok() && info->IsFile()) (void)place_.file_system->DeleteFile(place);
  }
}

std::string OutputFolder::path_of(const std::string& name) const {
  if (storage::is_uri(given_)) return storage::to_string(storage::parse_uri(given_) / name);
  return std::filesystem::path(given_) / name;
}

std::string OutputFolder::shown(const std::string& name) const {
  return place_.prefix + place_.path + (name.empty() ? "" : "/" + name);
}

std::string OutputFolder::place_of(const std::string& name) const {
  return place_.path + (place_.is_remote ? "/" : "/.") + name;
}

}  // namespace cadre::data
