// The C++ half of torch_samplers_test.py: for each line of standard input prints a line with the indices of
//
//     share <size> <world_size> <rank> <shuffle> <seed> <epoch> <pad or drop>
//     weighted <num_samples> <replacement> <seed> <epoch> <number of weights> <weights>
#include <cstdint>
#include <iostream>
#include <string>
#include <vector>

#include "cadre/train_torch.h"

using namespace cadre::train;

std::vector<std::size_t> read_share() {
  std::size_t size = 0;
  DistributedSamplerOptions options;
  int world_size = 0;
  int rank = 0;
  std::uint64_t epoch = 0;
  std::string remainder;
  std::cin >> size >> world_size >> rank >> options.shuffle >> options.seed >> epoch >> remainder;
  options.world_size = world_size;
  options.rank = rank;
  options.remainder = remainder == "drop" ? Remainder::drop : Remainder::pad;
  DistributedSampler sampler(size, options);
  sampler.set_epoch(epoch);
  sampler.reset(std::nullopt);
  std::vector<std::size_t> all;
  while (const auto batch = sampler.next(7)) all.insert(all.end(), batch->begin(), batch->end());
  return all;
}

std::vector<std::size_t> read_weighted() {
  std::size_t num_samples = 0;
  std::size_t count = 0;
  WeightedSamplerOptions options;
  std::uint64_t epoch = 0;
  std::cin >> num_samples >> options.replacement >> options.seed >> epoch >> count;
  options.num_samples = num_samples;
  std::vector<double> weights(count);
  for (double& weight : weights) std::cin >> weight;
  return weighted_sampler(weights, options)(epoch);
}

int main() {
  std::string kind;
  while (std::cin >> kind) {
    for (const std::size_t index : kind == "share" ? read_share() : read_weighted()) std::cout << index << ' ';
    std::cout << '\n';
  }
}
