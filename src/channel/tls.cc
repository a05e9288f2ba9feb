#include "channel/tls.h"

#include <dlfcn.h>
#include <fmt/format.h>

namespace cadre::channel {
namespace {

const Tls* load() {
  void* const library = ::dlopen(tls_module_file, RTLD_NOW | RTLD_LOCAL);
  void* const function = library == nullptr ? nullptr : ::dlsym(library, tls_module_function);
  if (function != nullptr) return reinterpret_cast<TlsModule>(function)();
  const char* const reason = ::dlerror();
  throw EngineError(
      fmt::format("connections to other machines need Cadre's library for TLS, which this program does not find: link "
                  "the program with cadre::tune of an installed Cadre, or add the folder of {} to LD_LIBRARY_PATH ({})",
                  tls_module_file, reason == nullptr ? "no reason given" : reason));
}

}  // namespace

const Tls& tls() {
  static const Tls* const loaded = load();
  return *loaded;
}

bool same_secret(const std::string& one, const std::string& other) {
  if (one.size() != other.size()) return false;
  unsigned difference = 0;
  for (std::size_t i = 0; i < one.size(); ++i)
    difference |= static_cast<unsigned char>(one[i]) ^ static_cast<unsigned char>(other[i]);
  return difference == 0;
}

}  // namespace cadre::channel
