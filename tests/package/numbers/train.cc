// Makes, views, reads in place and converts a column of each numeric type.
#include <cadre/data.h>

#include <cstdint>
#include <iostream>
#include <memory>
#include <span>
#include <vector>

using cadre::data::Batch;
using cadre::data::Column;

template <class T>
bool come_back() {
  const std::vector<T> numbers{1, 2, 3, 4};
  const auto owner = std::make_shared<std::vector<T>>(numbers);
  const Batch batch({{"made", Column(numbers)}, {"viewed", Column::view(std::span<const T>(*owner), owner)}});
  for (const char* column : {"made", "viewed"}) {
    const std::span<const T> values = batch.values<T>(column);
    if (std::vector<T>(values.begin(), values.end()) != numbers || batch.to_vector<T>(column) != numbers) return false;
  }
  return true;
}

int main() {
  const bool all = come_back<std::int8_t>() && come_back<std::int16_t>() && come_back<std::int32_t>() &&
                   come_back<std::int64_t>() && come_back<std::uint8_t>() && come_back<std::uint16_t>() &&
                   come_back<std::uint32_t>() && come_back<std::uint64_t>() && come_back<float>() &&
                   come_back<double>();
  std::cout << (all ? "all numbers came back\n" : "numbers were lost\n");
}
