#include "base/standard_streams.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/system_error.h"

namespace cadre::base {

void open_closed_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) >= 0) continue;
    // Gets the lowest number that is free, which is the stream's. Programs that are executed inherit it.
    if (::open("/dev/null", O_RDWR) < 0)
      throw_storage_error("open, in place of a closed standard stream,", "/dev/null");
  }
}

}  // namespace cadre::base
