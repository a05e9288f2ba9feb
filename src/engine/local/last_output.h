// Reads the last output of a worker that ended without a message; it usually shows the cause.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace cadre::engine::local {

// Limits of shown output: lines, frames of a back trace, and bytes of the lines and of the frames.
inline constexpr std::size_t kMostOutputLines = 10;
inline constexpr std::size_t kMostFrames = 20;
inline constexpr std::size_t kMostOutputBytes = std::size_t{4} << 10;

// Formats the end of a worker's stderr for messages: its last lines, and below them its back trace (see
// crash_handler.h) with the names of functions as far as known. Removes stacks of libtorch's errors and replaces
// invalid UTF-8. Each line is indented by two blanks; the text has no final new line. Empty if there was no output.
std::string describe_output(std::string_view end_of_stderr);

// Does the same for a file that had `from` bytes when the worker started. Empty if the file cannot be read.
std::string last_output(const std::filesystem::path& file, std::uint64_t from);

}  // namespace cadre::engine::local
