// Conditional requests of Google Cloud Storage: ifGenerationMatch, with the generation of an object as its version.
// https://cloud.google.com/storage/docs/request-preconditions
#pragma once

#include <memory>
#include <string>

#include "object_storage/object_protocol.h"
#include "storage/uri.h"

namespace cadre::storage {

// Makes the protocol. `root` is "bucket/folder". Uses the server and credentials that Arrow uses for the URI.
std::unique_ptr<ObjectProtocol> google_protocol(const Uri& uri, const std::string& root);

}  // namespace cadre::storage
