// The same for many numbers, in several threads.
#pragma once

#include <cstddef>
#include <functional>

namespace cadre::data {

// Calls with each number below `count`. Where calls throw, the error of the lowest number is thrown, as if they had
// come one after the other; then some of those above it are not made.
void side_by_side(std::size_t count, const std::function<void(std::size_t number)>& call);

}  // namespace cadre::data
