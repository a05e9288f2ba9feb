#include "power_loss.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <stdexcept>
#include <utility>

#include "file_identity.h"
#include "support/temporary_directory.h"

namespace cadre::survival {
namespace fs = std::filesystem;
namespace {

using test_support::content_of;
using test_support::write_bytes;

constexpr std::size_t kPage = 4096;

FileIdentity identity_of(const fs::path& path) { return identity_at(AT_FDCWD, path.c_str()); }

struct Place {
  std::string directory;  // identity of the directory
  std::string name;
  auto operator<=>(const Place&) const = default;
};

struct File {
  std::set<Place> before;  // its places when the directories were synced
  std::set<Place> now;
  fs::path path;  // one of the present places; empty: the file was removed
};

// Makes a third state of a disk from its last synced state and its present state.
class PowerCut {
 public:
  PowerCut(fs::path folder, const fs::path& memory, Random& random, Disk::Loss loss)
      : folder_(std::move(folder)), memory_(memory), random_(random), loss_(loss) {}

  void leave(const fs::path& target) {
    const std::string root = identity_of(folder_).text;
    scan(folder_, root);
    read_memory();
    for (const auto& [identity, file] : files_) place(identity, file);
    for (const auto& [identity, file] : files_) keep_replaced(identity, file);
    write_directory(root, target);
  }

 private:
  bool is_lost() { return loss_ == Disk::Loss::all || random_.chance(0.5); }

  void scan(const fs::path& directory, const std::string& identity);
  void read_memory();
  void place(const std::string& identity, const File& file);
  void claim(const Place& place, const std::string& identity);
  void keep_replaced(const std::string& identity, const File& file);
  void write_directory(const std::string& identity, const fs::path& target);
  void write_file(const std::string& identity, const fs::path& target);
  std::string bytes_of(const std::string& identity, const File& file);

  fs::path folder_;
  const fs::path& memory_;
  Random& random_;
  Disk::Loss loss_;
  std::map<std::string, File> files_;
  std::map<std::string, std::map<std::string, std::string>> left_;  // files by directory and name
  std::map<std::string, fs::path> written_;
};

void PowerCut::scan(const fs::path& directory, const std::string& identity) {
  for (const auto& entry : fs::directory_iterator(directory)) {
    const FileIdentity found = identity_of(entry.path());
    File& file = files_[found.text];
    file.now.insert({identity, entry.path().filename()});
    file.path = entry.path();
    if (S_ISDIR(found.mode)) scan(entry.path(), found.text);
  }
}

void PowerCut::read_memory() {
  for (const auto& entry : fs::directory_iterator(memory_)) {
    if (entry.path().extension() != ".names") continue;
    std::ifstream lines(entry.path());
    std::string identity;
    for (std::string name; lines >> identity && lines.get() == ' ' && std::getline(lines, name);)
      files_[identity].before.insert({entry.path().stem(), name});
  }
}

// Puts a file that was moved at its old or its new place, and decides on each other name separately.
void PowerCut::place(const std::string& identity, const File& file) {
  std::vector<Place> gone;
  std::vector<Place> come;
  std::ranges::set_difference(file.before, file.now, std::back_inserter(gone));
  std::ranges::set_difference(file.now, file.before, std::back_inserter(come));
  for (const Place& place : file.now)
    if (file.before.contains(place)) claim(place, identity);
  if (!gone.empty() && !come.empty()) {
    for (const Place& place : is_lost() ? gone : come) claim(place, identity);
    return;
  }
  for (const Place& place : gone)
    if (is_lost()) claim(place, identity);  // the removal is lost
  for (const Place& place : come)
    if (!is_lost()) claim(place, identity);
}

// Gives the name to the file that came later.
void PowerCut::claim(const Place& place, const std::string& identity) {
  const auto [claimed, is_first] = left_[place.directory].emplace(place.name, identity);
  if (!is_first && files_.at(identity).now.contains(place)) claimed->second = identity;
}

// If another file was renamed over this one, makes sure that one of the two is left under the name.
void PowerCut::keep_replaced(const std::string& identity, const File& file) {
  if (!file.path.empty()) return;
  for (const Place& place : file.before) {
    const bool was_replaced =
        std::ranges::any_of(files_, [&](const auto& other) { return other.second.now.contains(place); });
    if (was_replaced) left_[place.directory].emplace(place.name, identity);
  }
}

void PowerCut::write_directory(const std::string& identity, const fs::path& target) {
  fs::create_directory(target);
  for (const auto& [name, file] : left_[identity]) write_file(file, target / name);
}

void PowerCut::write_file(const std::string& identity, const fs::path& target) {
  const File& file = files_.at(identity);
  const fs::file_status status = fs::symlink_status(file.path);
  if (const auto written = written_.find(identity); written != written_.end())
    return fs::create_hard_link(written->second, target);
  if (fs::exists(memory_ / (identity + ".names")) || fs::is_directory(status)) return write_directory(identity, target);
  if (fs::is_symlink(status)) return fs::copy_symlink(file.path, target);
  written_[identity] = target;
  write_bytes(target, bytes_of(identity, file));
  if (!file.path.empty()) fs::permissions(target, status.permissions());
}

std::string PowerCut::bytes_of(const std::string& identity, const File& file) {
  std::string synced = content_of(memory_ / (identity + ".bytes"));
  if (file.path.empty() || loss_ == Disk::Loss::all) return synced;
  std::string now = content_of(file.path);
  const double fate = random_.uniform(0, 1);
  if (now == synced || fate < 0.25) return now;
  if (fate < 0.5) return synced;
  const auto [least, most] = std::minmax(now.size(), synced.size());
  const std::size_t size = fate < 0.6 ? now.size() : least + random_.below(most - least + 1);
  now.resize(std::max(size, most));
  synced.resize(now.size());
  for (std::size_t page = 0; page < now.size(); page += kPage)
    if (is_lost()) now.replace(page, kPage, synced, page, kPage);
  now.resize(size);
  return now;
}

void settle_directory(const fs::path& directory, const fs::path& memory) {
  std::string names;
  for (const auto& entry : fs::directory_iterator(directory)) {
    const FileIdentity file = identity_of(entry.path());
    names += file.text + " " + entry.path().filename().string() + "\n";
    if (S_ISDIR(file.mode)) settle_directory(entry.path(), memory);
    if (S_ISREG(file.mode)) write_bytes(memory / bytes_name(file), content_of(entry.path()));
  }
  write_bytes(memory / names_name(identity_of(directory)), names);
}

}  // namespace

Disk::Disk(fs::path folder, fs::path memory) : folder_(std::move(folder)), memory_(std::move(memory)) { settle(); }

std::vector<std::string> Disk::environment() const {
  return {"LD_PRELOAD=" CADRE_REMEMBER_SYNCS_LIBRARY, "CADRE_SYNCED=" + memory_.string()};
}

void Disk::settle() {
  fs::remove_all(memory_);
  fs::create_directories(memory_);
  settle_directory(folder_, memory_);
}

void Disk::lose_power(Random& random, Loss loss) {
  const fs::path left = folder_.string() + ".left";
  PowerCut(folder_, memory_, random, loss).leave(left);
  fs::remove_all(folder_);
  fs::rename(left, folder_);
  settle();
}

}  // namespace cadre::survival
