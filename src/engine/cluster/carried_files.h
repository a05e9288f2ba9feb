// Directories and files in pieces, as one end of a session sends them to the other where nodes do not see the run's
// directory. Both ends name them by their paths below a directory of their own: the run's, and the agent's.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/file_descriptor.h"

namespace cadre::engine::cluster {

struct Piece {
  enum class Kind { directory, bytes, end, fault };
  Kind kind = Kind::end;
  std::string place = {};  // what is carried
  std::string path = {};   // of a file or directory in it; empty: `place` is a file
  bool is_executable = false;
  std::string fault = {};                 // why it cannot be had
  std::span<const std::byte> bytes = {};  // the next ones of the file
};

inline constexpr std::size_t piece_bytes = std::size_t{256} << 10;
// Pieces are sent while less than this waits in a session: what follows them waits as long as that takes.
inline constexpr std::size_t most_waiting_bytes = std::size_t{2} << 20;
// Limits what is carried at once, because that holds everybody up.
inline constexpr std::uint64_t max_carried_bytes = std::uint64_t{2} << 30;

// Names of the files in a worker's directory into which it prints.
inline constexpr std::array output_files{"stdout", "stderr"};

// Returns why a path cannot be that of something that is carried; empty if it can.
std::string fault_of_place(const std::string& place);

// Returns the paths of all files below a directory. Throws StorageError, also if there is anything but files and
// directories.
std::vector<std::string> files_below(const std::filesystem::path& directory);
// Returns a new name beside a place, for what is not whole yet; recovery removes such names.
std::filesystem::path unfinished_beside(const std::filesystem::path& place);

// A directory or file, which is known again when it has got another name.
class KnownFile {
 public:
  KnownFile() = default;  // none
  // Holds it open, so that no other one gets its number. None if it cannot be opened.
  explicit KnownFile(const std::filesystem::path& path);
  bool is_at(const std::filesystem::path& path) const;

 private:
  base::FileDescriptor opened_;
};

// Reads a directory or a file.
class FileSender {
 public:
  // `source` is a directory or a file of this end, called `place` by both.
  FileSender(std::string place, std::filesystem::path source);

  const std::string& place() const { return place_; }
  // Returns the next piece, whose bytes are there until the next call; the last one is an end or a fault.
  Piece next();
  bool is_done() const { return is_done_; }

 private:
  void begin();
  Piece next_of_file();

  std::string place_;
  std::filesystem::path source_;
  bool has_begun_ = false;
  bool is_done_ = false;
  std::vector<std::string> directories_ = {};  // in reverse order, as the next two
  std::vector<std::string> files_ = {};
  base::FileDescriptor file_;
  bool is_executable_ = false;
  std::vector<std::byte> buffer_;
};

// Writes what it receives beside its place, and moves it there when it is whole.
class FileReceiver {
 public:
  // `directory`: that of this end. The other end is not trusted; `place` has no fault.
  FileReceiver(const std::filesystem::path& directory, const std::string& place);
  // Removes what is not whole.
  ~FileReceiver();
  FileReceiver(const FileReceiver&) = delete;
  FileReceiver& operator=(const FileReceiver&) = delete;

  // Returns true when it is whole and in its place, where it replaces what was there. Throws StorageError, also for a
  // fault, and for pieces that are none.
  bool take(const Piece& piece);

 private:
  void open(const Piece& piece);

  std::filesystem::path place_;
  std::filesystem::path unfinished_;
  std::uint64_t total_ = 0;
  base::FileDescriptor file_;
  std::string path_ = {};  // of that file
};

}  // namespace cadre::engine::cluster
