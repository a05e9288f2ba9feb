// Networks trained on MNIST with every configuration of a grid: mnist_table.csv, which make_mnist_table.py makes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cadre/tune/search_space.h"
#include "cadre/value.h"

namespace cadre::benchmarks {

inline constexpr std::int64_t mnist_epochs = 27;

// Returns the grid as a search space. Numbers are ordinals; an optimizer has its own learning rate, and momentum or
// beta.
tune::Space mnist_space();
// Returns the number of a config's row in the table, from 0.
std::size_t mnist_row(const Config& config);
// Returns the share of validation images that the network of a row does not recognise after each epoch.
const std::vector<double>& mnist_errors(std::size_t row);

}  // namespace cadre::benchmarks
