#include "engine/local/process_stat.h"

#include <cstdio>
#include <fstream>
#include <string>

namespace cadre::engine::local {

std::optional<ProcessStat> read_process_stat(const std::filesystem::path& directory) {
  std::ifstream file(directory / "stat");
  std::string text;
  std::getline(file, text, '\0');  // the program's name may contain any character, even new lines
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  ProcessStat stat;
  char state = 0;
  unsigned flags = 0;
  constexpr unsigned exiting_flag = 0x4;  // PF_EXITING of the kernel's sched.h
  // Fields: state, parent, process group, session, terminal, its process group, flags.
  if (std::sscanf(text.c_str() + name_end + 1, " %c %d %*d %*d %*d %*d %u", &state, &stat.parent, &flags) != 3) {
    return std::nullopt;
  }
  stat.exiting = (flags & exiting_flag) != 0;
  stat.waits = state == 'S';
  return stat;
}

}  // namespace cadre::engine::local
