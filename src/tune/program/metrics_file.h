// Files with metrics that a program writes and this process follows.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "cadre/value.h"
#include "tune/program/found_metrics.h"

namespace cadre::tune {

// A file that another program appends to, or writes anew.
class GrowingFile {
 public:
  enum class From { beginning, end };

  // Reads from the beginning, or what is added from now on. The file need not exist.
  GrowingFile(std::filesystem::path path, From from);

  struct Growth {
    std::string bytes = {};
    bool is_new = false;  // the file was written anew: these are its first bytes
  };
  // Returns what was added since the last call. Throws StorageError if the file cannot be read.
  Growth read();

 private:
  static constexpr std::size_t kMostCompared = 256;  // bytes before the end of what was read

  bool is_continued(int fd, std::uint64_t size) const;
  void remember(std::string_view bytes);

  std::filesystem::path path_;
  std::uint64_t offset_ = 0;
  std::string before_ = {};  // the last bytes before the offset
};

// Reports from a file, whose name says what it is.
class MetricsFile {
 public:
  enum class Kind { csv, json_lines, tensorboard };

  // Returns the kind of a file of this name; throws InvalidArgument if there is none.
  static Kind kind_of(const std::filesystem::path& path);

  // Rows that are there now do not count. `found` collects the events of TensorBoard, and must outlive this object.
  MetricsFile(const std::filesystem::path& path, FoundMetrics& found);

  // Returns the reports that were added since the last call. At the end of the program, `is_complete` is true: a last
  // row without a line end counts, too. Throws InvalidArgument that names the file and the line of what cannot be read.
  std::vector<Metrics> read(bool is_complete);

 private:
  // A file with what was read of it, and not yet used.
  struct Followed {
    Followed(const std::filesystem::path& path, GrowingFile::From from) : file(path, from) {}

    GrowingFile file;
    std::string unused = {};
    std::uint64_t line = 0;
  };

  void find_files(GrowingFile::From from);
  void read_lines(Followed& followed, bool is_complete, std::vector<Metrics>& reports);
  void read_events(Followed& followed, std::vector<Metrics>& reports);
  void read_row(std::string_view row, std::uint64_t line, std::vector<Metrics>& reports);

  std::filesystem::path path_;
  Kind kind_;
  FoundMetrics& found_;
  std::map<std::filesystem::path, Followed> files_ = {};  // one, unless the path is a directory
  std::vector<std::string> columns_ = {};                 // of a CSV file
};

}  // namespace cadre::tune
