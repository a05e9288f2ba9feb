// Conversion of cadre::Value to the contents of a file of torch.save and back.
#pragma once

#include "cadre/value.h"
#include "torch/pickle_value.h"

namespace cadre::pt {

// Throws InvalidArgument for a reference.
Value to_pt(const cadre::Value& value);
// Tuples become lists. Throws InvalidArgument for anything but dictionaries with text as keys, lists, numbers, bools,
// text and None, such as a tensor.
cadre::Value to_plain(const Value& value);

// Do the same for the state of a learning-rate schedule, in which Python has numbers of "milestones" by their epochs
// (a collections.Counter), and C++ a list of epochs.
Value to_pt_state(const Dict& state);
Dict to_plain_state(const Value& state);

}  // namespace cadre::pt
