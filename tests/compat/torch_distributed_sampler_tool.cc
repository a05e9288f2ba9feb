// The C++ half of torch_distributed_sampler_test.py: for each line "size world_size rank shuffle seed epoch remainder"
// of standard input prints a line with the indices of that share.
#include <cstdint>
#include <iostream>
#include <string>

#include "cadre/train_torch.h"

int main() {
  using namespace cadre::train;
  std::size_t size = 0;
  int world_size = 0;
  int rank = 0;
  bool shuffle = false;
  std::uint64_t seed = 0;
  std::uint64_t epoch = 0;
  std::string remainder;
  while (std::cin >> size >> world_size >> rank >> shuffle >> seed >> epoch >> remainder) {
    DistributedSampler sampler(size, {.world_size = world_size,
                                      .rank = rank,
                                      .shuffle = shuffle,
                                      .seed = seed,
                                      .remainder = remainder == "drop" ? Remainder::drop : Remainder::pad});
    sampler.set_epoch(epoch);
    sampler.reset(std::nullopt);
    while (const auto batch = sampler.next(7)) {
      for (const std::size_t index : *batch) std::cout << index << ' ';
    }
    std::cout << '\n';
  }
}
