#include "base/spawn.h"

#include <signal.h>
#include <spawn.h>
#include <unistd.h>

extern char** environ;

namespace cadre::base {
namespace {

// Attributes and file actions of posix_spawn.
class Preparation {
 public:
  explicit Preparation(const SpawnOptions& options) {
    ::posix_spawnattr_init(&attributes);
    ::posix_spawn_file_actions_init(&actions);
    ::sigset_t none;
    ::sigemptyset(&none);
    ::sigset_t all;
    ::sigfillset(&all);
    ::posix_spawnattr_setsigmask(&attributes, &none);
    ::posix_spawnattr_setsigdefault(&attributes, &all);
    const int flags =
        POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | (options.in_own_group ? POSIX_SPAWN_SETPGROUP : 0);
    ::posix_spawnattr_setflags(&attributes, static_cast<short>(flags));
    for (const auto& [own, programs] : options.descriptors) ::posix_spawn_file_actions_adddup2(&actions, own, programs);
    if (!options.directory.empty()) ::posix_spawn_file_actions_addchdir_np(&actions, options.directory.c_str());
  }
  Preparation(const Preparation&) = delete;
  Preparation& operator=(const Preparation&) = delete;
  ~Preparation() {
    ::posix_spawnattr_destroy(&attributes);
    ::posix_spawn_file_actions_destroy(&actions);
  }

  ::posix_spawnattr_t attributes{};
  ::posix_spawn_file_actions_t actions{};
};

std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

Spawned spawn(const SpawnOptions& options) {
  const Preparation prepared(options);
  const std::vector<char*> arguments = pointers_to(options.command);
  std::vector<char*> variables;
  if (options.environment) variables = pointers_to(*options.environment);
  Spawned spawned;
  spawned.error = ::posix_spawnp(&spawned.process, arguments.front(), &prepared.actions, &prepared.attributes,
                                 arguments.data(), options.environment ? variables.data() : environ);
  return spawned;
}

}  // namespace cadre::base
