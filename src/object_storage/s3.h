// Arrow's S3 file system, which is a library beside Arrow's. Also for src/data, which reads files through it.
#pragma once

#include <string>

#include "storage/uri.h"

namespace cadre::storage {

// Loads it, once; before a file system of S3 is made. Throws InvalidArgument where it cannot be loaded.
void load_s3();
// What Arrow makes a file system of, with what the user has not said otherwise: a small file takes one request to write
// instead of three.
std::string to_s3_uri(Uri uri);
// Has it finished at the program's end. Called after each file system of S3 was made, or refused: what the library has
// made by then is destroyed later.
void finish_s3_at_exit(bool is_made);

}  // namespace cadre::storage
