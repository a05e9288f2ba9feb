// Follows the output of workers for the console: the new lines of their files, each with the name of its worker.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

namespace cadre::view {

class WorkerOutput {
 public:
  // Maximum number of bytes shown of one file's new output between two reads.
  static constexpr std::size_t kMostBytes = std::size_t{64} << 10;

  // Whole lines, each ending with a newline.
  struct Text {
    std::string out = {};  // from standard outputs
    std::string err = {};  // from standard errors
  };

  // Starts to follow a worker that writes the files stdout and stderr in the directory. Their present contents are not
  // shown. If a worker of that name has not ended yet, continues with the same files.
  void watch(const std::string& name, const std::filesystem::path& directory);
  // Stops following a worker that has ended. Returns the rest of its output, including a last line without an end.
  Text end(const std::string& name);
  Text end_all();
  bool empty() const { return workers_.empty(); }

  // Return the output since the last call, of all workers in the order of their names, or of one. A line without an end
  // is held back until it is complete. Files that cannot be read are skipped; none stays open.
  Text take();
  Text take(const std::string& name);

 private:
  struct Tail {
    std::filesystem::path path = {};
    std::uint64_t offset = 0;  // bytes that were read
    std::string line = {};     // beginning of a line without an end yet
  };
  struct Worker {
    std::int64_t running = 0;        // workers of this name; one may begin before the previous one has ended
    std::array<Tail, 2> tails = {};  // standard output and standard error
  };
  static void append(const std::string& name, Worker& worker, bool last, Text& text);
  static std::string read(Tail& tail);
  static void append_lines(const std::string& name, Tail& tail, const std::string& text, bool last, std::string& lines);

  std::map<std::string, Worker> workers_ = {};
};

}  // namespace cadre::view
