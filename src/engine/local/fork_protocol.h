// Messages between the fork server and the processes that request workers: packets on a SOCK_SEQPACKET socketpair.
// Both ends are the same program, so these are plain structs without a version.
#pragma once

#include <climits>
#include <cstdint>
#include <optional>

namespace cadre::engine::local {

struct Request {
  enum class Kind : std::uint32_t {
    spawn,  // with the worker's end of its connection as SCM_RIGHTS
    kill,
    end_disconnected,  // kills a worker that closed its connection; it may already be ending by itself
    connect,           // with the server's end of a further connection as SCM_RIGHTS
    quit,              // sent by the controller: the server ends
  };
  Kind kind = Kind::quit;
  std::int32_t threads = 1;  // for numerical libraries
  std::uint64_t worker = 0;  // unique for the connection
  bool starts_workers = false;
  std::optional<std::uint64_t> memory_bytes = {};
  char directory[PATH_MAX] = {};  // of its output; sent up to the terminating zero
};

struct Notice {
  enum class Kind : std::uint32_t {
    code,
    signal,
    not_started,
    server_failed,  // last: the server ends; `detail` is the reason
  };
  Kind kind = Kind::code;
  std::int32_t value = 0;
  std::uint64_t worker = 0;
  char detail[1000] = {};  // sent up to the terminating zero
};

}  // namespace cadre::engine::local
