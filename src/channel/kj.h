// The one header that includes kj and Cap'n Proto. Only .cc files of this folder include it.
#pragma once

// kj leaves this operator out in C++20, and clang-19 then has none for the `"literal" == StringPtr` of the headers
// below. StringPtr(a), because `b == a` would call this same operator, reversed, for ever.
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
