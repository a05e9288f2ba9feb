// The only file that includes ProcessGroupGloo.hpp, and with it gloo_declarations/.
#include "torch/distributed/gloo_backend.h"

#include <torch/version.h>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

// Gloo's declarations may change with torch: compare gloo_declarations/ with the names that ProcessGroupGloo.hpp uses.
static_assert(TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 11 && TORCH_VERSION_MINOR <= 15);

namespace cadre::distributed {
namespace {

std::shared_ptr<gloo::transport::Device> make_device(const GlooAddress& address) {
  using Gloo = c10d::ProcessGroupGloo;
  if (!address.host.empty()) return Gloo::createDeviceForHostname(address.host);
  if (!address.interface.empty()) return Gloo::createDeviceForInterface(address.interface);
  return Gloo::createDefaultDevice();
}

}  // namespace

c10::intrusive_ptr<c10d::Backend> make_gloo_backend(const c10::intrusive_ptr<c10d::Store>& store, int rank,
                                                    int world_size, std::chrono::milliseconds timeout,
                                                    const GlooAddress& address) {
  auto options = c10d::ProcessGroupGloo::Options::create(timeout);
  options->devices.push_back(make_device(address));
  return c10::make_intrusive<c10d::ProcessGroupGloo>(store, rank, world_size, options);
}

}  // namespace cadre::distributed
