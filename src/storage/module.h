// Interface of the library for object storages. It is a separate library, loaded by the first process that uses such
// a URI, so that other programs do not pay for its dependencies.
#pragma once

#include "storage/storage.h"

namespace cadre::storage {

inline constexpr const char* kModuleFile = "libcadre_object_storage.so";
inline constexpr const char* kModuleFunction = "cadre_open_object_storage";
// The caller owns the returned object. Throws the same exceptions as open_storage.
using OpenObjectStorage = Storage* (*)(const Uri& uri);

}  // namespace cadre::storage
