// Messages of type tf.train.Example: named lists of bytes, floats or integers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace cadre::data {

// The values of a feature; none: it is of no kind.
using FeatureValues =
    std::variant<std::monostate, std::vector<std::string_view>, std::vector<float>, std::vector<std::int64_t>>;

struct Feature {
  std::string_view name = {};
  FeatureValues values = {};
};

// Returns the features of a message, in its order; a name that occurs twice has its last values, as in Protocol
// Buffers. Texts refer to the message. Throws StorageError if it is no such message.
std::vector<Feature> parse_example(std::string_view message);

}  // namespace cadre::data
