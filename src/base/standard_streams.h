// The descriptors 0 to 2 of this process.
#pragma once

namespace cadre::base {

// Opens /dev/null for each standard stream that is closed: else the next file or socket gets its number, and with it
// what is printed, or is closed when the stream is redirected. Call it before anything else is opened. Throws
// StorageError if /dev/null cannot be opened.
void open_closed_standard_streams();

}  // namespace cadre::base
