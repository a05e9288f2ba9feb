// Limits on the depth and size of values. A result is stored, sent to another worker together with its config, and
// saved in snapshots of the controller's state. Its limits are therefore below those of these carriers: an accepted
// result can always be written and read again.
#pragma once

#include <cstddef>

#include "cadre/value.h"

namespace cadre::base {

// Maximum levels of lists and dictionaries in a message or JSON text.
inline constexpr std::size_t max_value_depth = 64;
// Maximum levels of a result, including the dictionary of its metrics.
inline constexpr std::size_t max_result_depth = 54;
// A snapshot puts seven levels around a result, and a reference is two levels of JSON.
inline constexpr std::size_t max_depth_around_result = 10;
static_assert(max_result_depth + max_depth_around_result <= max_value_depth);

inline constexpr std::size_t max_message_bytes = std::size_t{64} << 20;
// Maximum size of a report. The message that carries the result to another worker also contains the trial's config.
inline constexpr std::size_t max_result_bytes = std::size_t{32} << 20;
static_assert(2 * max_result_bytes <= max_message_bytes);

// Maximum size of one value of a result or of a trainable's parameters.
inline constexpr std::size_t max_stored_value_bytes = std::size_t{1} << 20;
// Maximum size of all parameters of a trainable: they are sent with a trial's config and the result to continue from.
inline constexpr std::size_t max_parameters_bytes = std::size_t{16} << 20;

// Returns the stored size of a text, list or dictionary; 0 for other values, which are always small.
std::size_t stored_bytes(const Value& value);

// Returns true if a value has more than `levels` levels of lists and dictionaries; numbers and texts have none.
bool is_deeper_than(const Value& value, std::size_t levels);

// Throws InvalidArgument that lists every metric that cannot be stored: without a name, too large or too deep.
void check_metrics(const Metrics& metrics);

}  // namespace cadre::base
