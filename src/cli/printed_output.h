// Reads the output that a worker has printed into a file, piece by piece, while it may go on printing.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace cadre::cli {

class PrintedOutput {
 public:
  // Called with a line at a time, without its end. A line of more than kLongestLine bytes comes in parts.
  using Show = std::function<void(std::string_view line)>;
  static constexpr std::size_t kLongestLine = std::size_t{1} << 20;

  // A file that need not be there yet. Begins with its last lines, so many of them; empty: with all that it holds.
  PrintedOutput(std::filesystem::path file, std::optional<std::size_t> last_lines)
      : file_(std::move(file)), last_lines_(last_lines) {}

  // Shows the lines that have come since the last call; a line without an end only where it is the `last` call. Bytes
  // that the limit of output (engine/local/output_limit.h) has dropped before they could be shown are a line of their
  // own. Throws StorageError when the file cannot be read.
  void show_new(bool last, const Show& show);

 private:
  void show_text(std::string_view text, const Show& show);

  std::filesystem::path file_;
  std::optional<std::size_t> last_lines_;
  bool begun_ = false;
  std::uint64_t position_ = 0;  // in all that was ever printed: what was shown, or was not to be
  std::string line_ = {};       // that has begun
};

}  // namespace cadre::cli
