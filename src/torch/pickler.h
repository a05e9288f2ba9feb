// Conversion of values to a pickle that torch.load(weights_only=True) accepts.
#pragma once

#include <string>
#include <vector>

#include "torch/pickle_value.h"

namespace cadre::pt {

struct Pickled {
  std::string bytes;  // the record "data.pkl"
  // The memory of the tensors, on the CPU: the records "data/0", "data/1", … Tensors that share memory share a record.
  std::vector<c10::Storage> storages;
};

// Throws InvalidArgument for a tensor that is sparse, quantized, undefined, or of a type that such files do not
// support.
Pickled pickle(const Value& value);

}  // namespace cadre::pt
