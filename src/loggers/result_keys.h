// Keys of results that Cadre adds to a training function's metrics, shared by trials and training runs.
#pragma once

#include <string_view>

namespace cadre::loggers::result_key {

inline constexpr std::string_view training_iteration = "training_iteration";
inline constexpr std::string_view time_this_iter_s = "time_this_iter_s";
inline constexpr std::string_view time_total_s = "time_total_s";
inline constexpr std::string_view timestamp = "timestamp";
inline constexpr std::string_view date = "date";
inline constexpr std::string_view pid = "pid";
inline constexpr std::string_view hostname = "hostname";
inline constexpr std::string_view time_since_restore = "time_since_restore";
inline constexpr std::string_view iterations_since_restore = "iterations_since_restore";
inline constexpr std::string_view timesteps_total = "timesteps_total";
inline constexpr std::string_view checkpoint_dir_name = "checkpoint_dir_name";  // in the result files only

}  // namespace cadre::loggers::result_key
