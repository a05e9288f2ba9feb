// What the library for object storages offers to the program that loads it. It is a library of its own, loaded by the
// first process that uses such a URI, so that nobody else pays for what it needs.
#pragma once

#include "storage/storage.h"

namespace cadre::storage {

inline constexpr const char* kModuleFile = "libcadre_object_storage.so";
inline constexpr const char* kModuleFunction = "cadre_open_object_storage";
// The caller owns what it returns. Throws what open_storage does.
using OpenObjectStorage = Storage* (*)(const Uri& uri);

}  // namespace cadre::storage
