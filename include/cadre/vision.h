/// \file
/// Images for training with libtorch.
#pragma once

namespace cadre {
/// Images: changes of them, as torchvision has them.
namespace vision {}
}  // namespace cadre

#include "cadre/vision/transforms.h"
