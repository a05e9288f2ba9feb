/// \file
/// Images for training with libtorch.
#pragma once

namespace cadre {
/// Images: changes of them, and models, as torchvision has them.
namespace vision {}
}  // namespace cadre

#include "cadre/vision/resnet.h"
#include "cadre/vision/transforms.h"
