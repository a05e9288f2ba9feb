// Conditional requests of S3: If-Match and If-None-Match, with the ETag of an object as its version.
// https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-requests.html
#pragma once

#include <arrow/filesystem/s3fs.h>

#include <memory>
#include <string>

#include "object_storage/object_protocol.h"

namespace cadre::storage {

// Makes the protocol. `root` is "bucket/folder". Uses the server and credentials of the file system.
std::unique_ptr<ObjectProtocol> s3_protocol(const arrow::fs::S3FileSystem& file_system, const std::string& root);

}  // namespace cadre::storage
