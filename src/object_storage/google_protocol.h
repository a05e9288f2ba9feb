// Google Cloud Storage's own requests on a condition: ifGenerationMatch, with the generation of an object as its
// version. https://cloud.google.com/storage/docs/request-preconditions
#pragma once

#include <memory>
#include <string>

#include "object_storage/object_protocol.h"
#include "storage/uri.h"

namespace cadre::storage {

// `root` is "bucket/folder". Server and credentials are those that Arrow takes for the URI.
std::unique_ptr<ObjectProtocol> google_protocol(const Uri& uri, const std::string& root);

}  // namespace cadre::storage
