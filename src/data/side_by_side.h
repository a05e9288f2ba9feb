// Parallel calls of a function with many numbers.
#pragma once

#include <cstddef>
#include <functional>

namespace cadre::data {

// Calls `call` with each number below `count`. Throws the error of the lowest number that fails, like a sequential
// loop; some of the numbers above it are then skipped.
void side_by_side(std::size_t count, const std::function<void(std::size_t number)>& call);

}  // namespace cadre::data
