// Arrow's S3 file system, in a library separate from Arrow's. Also used by src/data to read files.
#pragma once

#include <string>

#include "storage/uri.h"

namespace cadre::storage {

// Loads the library once; call before making an S3 file system. Throws InvalidArgument if it cannot be loaded.
void load_s3();
// Returns the URI for Arrow, with a default for an option that the user has not set: writing a small file takes one
// request instead of three.
std::string to_s3_uri(Uri uri);
// Registers the shutdown of Arrow's S3 at program exit. Call after each S3 file system was made (`is_made`) or
// refused: objects that the library has created by then are destroyed after the shutdown.
void finish_s3_at_exit(bool is_made);

}  // namespace cadre::storage
