// Text for a POSIX shell, which runs what starts an agent on a node.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace cadre::engine::cluster {

// Returns the text as one word, whatever is in it.
std::string shell_word(std::string_view text);
// Returns words as a command.
std::string shell_line(const std::vector<std::string>& words);
// Returns lines of a script after which it prints its errors to a file that was not there before; nowhere else than
// before if that cannot be written. `number`: shell text behind the path, or empty.
std::string log_lines(const std::filesystem::path& log, std::string_view number);

// Returns the lines of what a command has printed in one, "; " between them; the end of it, if it is long.
std::string in_one_line(std::string_view printed);
// Returns the last line of it, or the beginning of that.
std::string last_line(std::string_view printed);

}  // namespace cadre::engine::cluster
