// TensorBoard's event files, as bytes: TFRecord frames around protocol buffers (event.proto, summary.proto and
// plugin_data.proto of the hparams plugin, as in TensorBoard). No I/O.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cadre/value.h"

namespace cadre::loggers::tensorboard {

// Times are seconds since 1970. Tags and other text must be UTF-8. Each of the following appends whole records.

// Appends the first record of every file, which also marks the file as Cadre's.
void append_file_version(std::string& records, double wall_time);

// Appends the values of one step; see append_scalar and append_histogram. Does nothing if there are none.
void append_step(std::string& records, double wall_time, std::int64_t step, std::string_view summary);

// A finished session for the HPARAMS tab.
struct Session {
  std::string group_name = {};  // sessions with the same name are shown as one
  double start_time = 0;
  double end_time = 0;
  bool success = true;
  // Bools, finite numbers and text keep their type; everything else becomes JSON text.
  std::vector<std::pair<std::string, Value>> hparams = {};
  std::vector<std::string> metric_tags = {};  // tags of scalars
};
// Appends the summaries _hparams_/experiment, _hparams_/session_start_info and _hparams_/session_end_info.
void append_session(std::string& records, const Session& session);

// ---- Parts of a step's summary

void append_scalar(std::string& summary, std::string_view tag, float value);
// Appends the distribution of numbers, in at most 30 buckets of the same width. There must be at least one number, and
// all must be finite.
void append_histogram(std::string& summary, std::string_view tag, const std::vector<double>& numbers);

// ---- Reading what was written

bool is_cadres(std::string_view file);

struct FileContent {
  double start_time = 0;    // time of its first record
  std::size_t results = 0;  // bytes before the first record of a session
  // Tags of the steps, in the order of their first use.
  std::vector<std::string> scalar_tags = {};
  std::vector<std::string> histogram_tags = {};
};
// Reads a file that Cadre wrote, up to its first invalid record.
FileContent read_content(std::string_view file);

// ---- Reading what any program wrote

struct Scalar {
  std::string tag = {};
  double value = 0;
};
// Removes the complete records that `records` begins with, and returns their scalars in order: the numbers that
// PyTorch, TensorFlow and Cadre write. Other summaries are left out.
std::vector<Scalar> take_scalars(std::string_view& records);

}  // namespace cadre::loggers::tensorboard
