// The one header that includes kj's HTTP library. Only .cc files of this folder include it.
#pragma once

// In C++20 kj omits this operator; channel/kj.h says why it is here.
#include <kj/string.h>
namespace kj {
inline bool operator==(const char* a, const StringPtr& b) { return b == StringPtr(a); }
}  // namespace kj

#include <kj/async-io.h>
#include <kj/async-unix.h>
#include <kj/compat/http.h>
#include <kj/exception.h>
