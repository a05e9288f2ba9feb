#include "cadre/version.h"

namespace cadre {

const char* version() noexcept { return CADRE_VERSION; }

}  // namespace cadre
