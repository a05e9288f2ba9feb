// Follows the output of workers for the console: the new lines of their files, each with the name of its worker.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

namespace cadre::run {

class WorkerOutput {
 public:
  // The most that is shown of one file's new output between two reads.
  static constexpr std::size_t kMostBytes = std::size_t{64} << 10;

  // Whole lines, each ending with a newline.
  struct Text {
    std::string out = {};  // of standard outputs
    std::string err = {};  // of standard errors
  };

  // A worker begins that writes the files stdout and stderr in the directory. What they hold already is not shown. A
  // worker of that name that has not ended yet goes on with the same files.
  void watch(const std::string& name, const std::filesystem::path& directory);
  // The worker has ended: what is left is returned, with the beginning of a line that has no end.
  Text end(const std::string& name);
  Text end_all();
  bool empty() const { return workers_.empty(); }

  // Returns the output since the last call, of all workers in the order of their names, or of one. A line without an
  // end waits for it. Files that cannot be read are passed over; none stays open.
  Text take();
  Text take(const std::string& name);

 private:
  struct Tail {
    std::filesystem::path path = {};
    std::uint64_t offset = 0;  // up to which it was read
    std::string line = {};     // that has begun
  };
  struct Worker {
    std::int64_t running = 0;        // under this name; the next one may begin before the last one has ended
    std::array<Tail, 2> tails = {};  // standard output and standard error
  };
  static void append(const std::string& name, Worker& worker, bool last, Text& text);
  static std::string read(Tail& tail);
  static void append_lines(const std::string& name, Tail& tail, const std::string& text, bool last, std::string& lines);

  std::map<std::string, Worker> workers_ = {};
};

}  // namespace cadre::run
