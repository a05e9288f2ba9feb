#include "storage/arrow_module.h"

#include <dlfcn.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <string_view>

namespace cadre::storage {
namespace {

void (*arrow_loader)(const std::string& user) = nullptr;

// Loads the library of Arrow's whose name the reason begins with from the folder in CADRE_ARROW_ROOT. Returns false if
// there is none.
bool load_from_arrow_root(const std::string& reason) {
  const char* const root = std::getenv("CADRE_ARROW_ROOT");
  if (root == nullptr || *root == '\0' || !is_arrow_missing(reason)) return false;
  const std::filesystem::path library = std::filesystem::path(root) / reason.substr(0, reason.find(':'));
  return ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL) != nullptr;
}

}  // namespace

void* load_arrow_module(const char* file, const char* function, std::string& reason) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  std::string last_reason;
  for (;;) {
    void* const library = ::dlopen(file, RTLD_NOW | RTLD_LOCAL);
    void* const address = library == nullptr ? nullptr : ::dlsym(library, function);
    if (address != nullptr) return address;
    const char* const said = ::dlerror();
    reason = said == nullptr ? "no reason given" : said;
    // A library that is loaded is found by its name, so the next reason is another one.
    if (reason == last_reason || !load_from_arrow_root(reason)) return nullptr;
    last_reason = reason;
  }
}

bool is_arrow_missing(const std::string& reason) {
  return reason.starts_with("libarrow") || reason.starts_with("libparquet");
}

std::string how_to_get_arrow() {
  return "where Cadre is a Python package, pip install \"cadre-tune[storage]\"; elsewhere install Cadre again, or name "
         "the folder pyarrow of the Python wheel of that version in CADRE_ARROW_ROOT";
}

void set_arrow_loader(void (*load)(const std::string& user)) { arrow_loader = load; }

void prepare_arrow(const std::string& user) {
  static std::atomic<bool> is_prepared = false;
  if (arrow_loader == nullptr || is_prepared) return;
  arrow_loader(user);
  is_prepared = true;
}

}  // namespace cadre::storage
