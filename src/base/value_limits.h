// How deep and how large values may be. A result is stored, is sent to another worker together with its config, and is
// part of a snapshot of the controller's state: so it has limits of its own, below those of whatever carries it, and
// what was accepted once can always be written and read again.
#pragma once

#include <cstddef>

#include "cadre/value.h"

namespace cadre::base {

// Levels of lists and dictionaries that a message or a JSON text can have.
inline constexpr std::size_t max_value_depth = 64;
// Levels of a result, the dictionary of its metrics included.
inline constexpr std::size_t max_result_depth = 54;
// In a snapshot seven levels are around a result, and a reference is two levels of JSON.
inline constexpr std::size_t max_depth_around_result = 10;
static_assert(max_result_depth + max_depth_around_result <= max_value_depth);

inline constexpr std::size_t max_message_bytes = std::size_t{64} << 20;
// Of the message that brings a result from a worker. The one that takes it to another has the trial's config too.
inline constexpr std::size_t max_result_bytes = std::size_t{32} << 20;
static_assert(2 * max_result_bytes <= max_message_bytes);

// Of one value of a result or of a trainable's parameters.
inline constexpr std::size_t max_stored_value_bytes = std::size_t{1} << 20;
// Of a trainable's parameters together: they are sent with a trial's config and the result that it continues from.
inline constexpr std::size_t max_parameters_bytes = std::size_t{16} << 20;

// What a text, a list or a dictionary takes where it is stored; 0 for what is small in any case.
std::size_t stored_bytes(const Value& value);

// Whether a value has more than `levels` levels of lists and dictionaries; a number or a text has none.
bool is_deeper_than(const Value& value, std::size_t levels);

// Throws InvalidArgument that names every metric which cannot be stored: one without a name, too large or too deep.
void check_metrics(const Metrics& metrics);

}  // namespace cadre::base
