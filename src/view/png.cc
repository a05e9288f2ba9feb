#include "view/png.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>

#include "base/file.h"
#include "cadre/error.h"

namespace cadre::view {
namespace {

// The functions of cairo, GObject and librsvg that are called, as their headers declare them; these are not needed to
// build. All have been stable since librsvg 2.46 (2019).
namespace c_api {
struct RsvgHandle;
struct CairoSurface;
struct Cairo;
struct GError {
  std::uint32_t domain;
  int code;
  char* message;
};
struct RsvgRectangle {
  double x, y, width, height;
};
using WriteBytes = int (*)(void* closure, const unsigned char* bytes, unsigned int count);
}  // namespace c_api

struct Libraries {
  c_api::RsvgHandle* (*handle_new)(const unsigned char* bytes, unsigned long count, c_api::GError** error);
  int (*render)(c_api::RsvgHandle*, c_api::Cairo*, const c_api::RsvgRectangle* viewport, c_api::GError** error);
  void (*unref)(void* object);
  void (*error_free)(c_api::GError*);
  c_api::CairoSurface* (*surface_create)(int format, int width, int height);
  int (*surface_status)(c_api::CairoSurface*);
  void (*surface_destroy)(c_api::CairoSurface*);
  int (*write_png)(c_api::CairoSurface*, c_api::WriteBytes, void* closure);
  c_api::Cairo* (*cairo_create)(c_api::CairoSurface*);
  void (*cairo_destroy)(c_api::Cairo*);
};

constexpr const char* kRsvgFile = "librsvg-2.so.2";
constexpr const char* kCairoFile = "libcairo.so.2";
constexpr int kArgb32 = 0;

// Opens a library, which is never closed: GObject's types cannot be unloaded.
void* open_library(const char* name) {
  if (void* const library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL)) return library;
  const char* const reason = ::dlerror();
  throw NotFound(fmt::format(
      "a PNG picture needs librsvg and cairo, which are not installed: `apt-get install librsvg2-2`, or the package "
      "librsvg2 of another distribution; a picture in SVG needs neither ({})",
      reason == nullptr ? name : reason));
}

template <class Function>
void find(void* library, const char* name, Function& function) {
  void* const found = ::dlsym(library, name);
  if (found == nullptr)
    throw NotFound(fmt::format("a PNG picture needs librsvg 2.46 or newer: the one that is installed has no {}", name));
  function = reinterpret_cast<Function>(found);
}

Libraries load() {
  void* const rsvg = open_library(kRsvgFile);
  void* const cairo = open_library(kCairoFile);
  Libraries loaded = {};
  find(rsvg, "rsvg_handle_new_from_data", loaded.handle_new);
  find(rsvg, "rsvg_handle_render_document", loaded.render);
  find(rsvg, "g_object_unref", loaded.unref);  // dlsym searches what librsvg is linked with, too
  find(rsvg, "g_error_free", loaded.error_free);
  find(cairo, "cairo_image_surface_create", loaded.surface_create);
  find(cairo, "cairo_surface_status", loaded.surface_status);
  find(cairo, "cairo_surface_destroy", loaded.surface_destroy);
  find(cairo, "cairo_surface_write_to_png_stream", loaded.write_png);
  find(cairo, "cairo_create", loaded.cairo_create);
  find(cairo, "cairo_destroy", loaded.cairo_destroy);
  return loaded;
}

const Libraries& libraries() {
  static std::mutex mutex;
  static std::unique_ptr<const Libraries> loaded;
  const std::lock_guard lock(mutex);
  if (loaded == nullptr) loaded = std::make_unique<const Libraries>(load());
  return *loaded;
}

[[noreturn]] void refuse(const std::string& reason) {
  throw InvalidArgument("the picture cannot be drawn as PNG: " + reason);
}

std::string take_message(const Libraries& library, c_api::GError* error) {
  if (error == nullptr) return "librsvg gives no reason";
  std::string message = error->message;
  library.error_free(error);
  return message;
}

// Returns the number in an attribute of the root element, such as width="640".
double length_of(std::string_view svg, std::string_view name) {
  const std::string before = fmt::format(" {}=\"", name);
  const std::size_t root = svg.find("<svg");
  const std::size_t end = root == svg.npos ? svg.npos : svg.find('>', root);
  const std::size_t begin = root == svg.npos ? svg.npos : svg.find(before, root);
  if (begin == svg.npos || begin > end) refuse(fmt::format("the document has no {}", name));
  const double length = std::strtod(std::string(svg.substr(begin + before.size(), 32)).c_str(), nullptr);
  if (!(length >= 1)) refuse(fmt::format("its {} is no number of pixels", name));
  return length;
}

int append_bytes(void* closure, const unsigned char* bytes, unsigned int count) {
  static_cast<std::string*>(closure)->append(reinterpret_cast<const char*>(bytes), count);
  return 0;
}

}  // namespace

std::string to_png(std::string_view svg, double scale) {
  const double width = std::ceil(length_of(svg, "width") * scale);
  const double height = std::ceil(length_of(svg, "height") * scale);
  if (width > kLargestPng || height > kLargestPng)
    refuse(fmt::format("it has {} by {} pixels, and at most {} are possible each way; SVG has no limit", width, height,
                       kLargestPng));
  const Libraries& library = libraries();
  c_api::GError* error = nullptr;
  const auto release = [&](c_api::RsvgHandle* handle) { library.unref(handle); };
  const std::unique_ptr<c_api::RsvgHandle, decltype(release)> handle(
      library.handle_new(reinterpret_cast<const unsigned char*>(svg.data()), svg.size(), &error), release);
  if (handle == nullptr) refuse(take_message(library, error));
  const std::unique_ptr<c_api::CairoSurface, decltype(library.surface_destroy)> surface(
      library.surface_create(kArgb32, static_cast<int>(width), static_cast<int>(height)), library.surface_destroy);
  if (library.surface_status(surface.get()) != 0) refuse("there is not enough memory");
  {
    const std::unique_ptr<c_api::Cairo, decltype(library.cairo_destroy)> context(library.cairo_create(surface.get()),
                                                                                 library.cairo_destroy);
    const c_api::RsvgRectangle viewport{0, 0, width, height};
    if (library.render(handle.get(), context.get(), &viewport, &error) == 0) refuse(take_message(library, error));
  }
  std::string png;
  if (library.write_png(surface.get(), append_bytes, &png) != 0) refuse("there is not enough memory");
  return png;
}

PictureFormat picture_format_of(const std::filesystem::path& file) {
  std::string ending = file.extension();
  std::ranges::transform(ending, ending.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (ending == ".svg") return PictureFormat::svg;
  if (ending == ".png") return PictureFormat::png;
  throw InvalidArgument(fmt::format("{}: a picture's file ends with .svg or .png", file.string()));
}

void write_picture(std::string_view svg, const std::filesystem::path& file) {
  base::replace_file(file, picture_format_of(file) == PictureFormat::svg ? std::string(svg) : to_png(svg));
}

}  // namespace cadre::view
