// The one header that includes kj and Cap'n Proto. Only .cc files of this folder include it.
#pragma once

// In C++20 kj omits this operator, and clang-19 then finds none for `"literal" == StringPtr` in the headers below.
// The body uses StringPtr(a) because `b == a` would call this operator again, reversed, without end.
#include <kj/string.h>
namespace kj {
inline bool operator==(const char* a, const StringPtr& b) { return b == StringPtr(a); }
}  // namespace kj

#include <capnp/message.h>
#include <capnp/serialize.h>
#include <kj/async-unix.h>
#include <kj/async.h>
#include <kj/exception.h>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
#include "channel/protocol.capnp.h"
#pragma GCC diagnostic pop
