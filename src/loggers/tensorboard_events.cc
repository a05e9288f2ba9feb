#include "loggers/tensorboard_events.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <set>

#include "base/crc32c.h"
#include "base/utf8.h"
#include "loggers/protobuf.h"

namespace cadre::loggers::tensorboard {
namespace {

using protobuf::append_bytes;
using protobuf::append_double;
using protobuf::append_float;
using protobuf::append_integer;
using protobuf::append_key;
using protobuf::append_little_endian;
using protobuf::append_varint;
using protobuf::Field;
using protobuf::take_field;
using protobuf::varint_size;
using protobuf::WireType;

constexpr std::string_view kSessionTags = "_hparams_/";
constexpr std::size_t kHeaderSize = 12;  // the payload's size in 64 bits, and the checksum of the size
constexpr std::size_t kFooterSize = 4;   // the payload's checksum

// Field numbers.
namespace event {
constexpr unsigned wall_time = 1, step = 2, file_version = 3, summary = 5, source_metadata = 10;
}
namespace source_metadata {
constexpr unsigned writer = 1;
}
namespace summary {
constexpr unsigned value = 1;
}
namespace summary_value {
constexpr unsigned tag = 1, simple_value = 2, histo = 5, tensor = 8, metadata = 9;
}
namespace tensor {
constexpr unsigned dtype = 1, shape = 2;
}
namespace histogram {
constexpr unsigned min = 1, max = 2, num = 3, sum = 4, sum_squares = 5, bucket_limit = 6, bucket = 7;
}
namespace summary_metadata {
constexpr unsigned plugin_data = 1;
}
namespace plugin_data {
constexpr unsigned plugin_name = 1, content = 2;
}
namespace hparams_plugin_data {
constexpr unsigned version = 1, experiment = 2, session_start_info = 3, session_end_info = 4;
}
namespace experiment {
constexpr unsigned hparam_infos = 4, metric_infos = 5;
}
namespace hparam_info {
constexpr unsigned name = 1, type = 4, differs = 7;
}
namespace metric_info {
constexpr unsigned name = 1;
}
namespace metric_name {
constexpr unsigned tag = 2;
}
namespace session_start_info {
constexpr unsigned hparams = 1, group_name = 4, start_time_secs = 5;
}
namespace session_end_info {
constexpr unsigned status = 1, end_time_secs = 2;
}
namespace map_entry {
constexpr unsigned key = 1, value = 2;
}
namespace struct_value {
constexpr unsigned number_value = 2, string_value = 3, bool_value = 4;
}

enum class HparamType { text = 1, boolean = 2, number = 3 };
enum class SessionStatus { success = 1, failure = 2 };

std::uint32_t masked_checksum(std::string_view bytes) {
  const std::uint32_t crc = base::crc32c(bytes);
  return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

// Appends a record with the payload that `append_payload` appends.
template <class Append>
void append_record(std::string& records, Append append_payload) {
  const std::size_t begin = records.size();
  records.append(kHeaderSize, '\0');
  append_payload();
  std::string header;
  append_little_endian(header, std::uint64_t{records.size() - begin - kHeaderSize});
  append_little_endian(header, masked_checksum(header));
  records.replace(begin, kHeaderSize, header);
  append_little_endian(records, masked_checksum(std::string_view(records).substr(begin + kHeaderSize)));
}

std::string version_fields() {
  std::string source;
  append_bytes(source, source_metadata::writer, "cadre");
  std::string fields;
  append_bytes(fields, event::file_version, "brain.Event:2");
  append_bytes(fields, event::source_metadata, source);
  return fields;
}

// Appends the beginning of a summary's value: its key, its size and its tag.
void append_value_begin(std::string& out, std::string_view tag, std::size_t size_behind_tag) {
  append_key(out, summary::value, WireType::length_delimited);
  append_varint(out, 1 + varint_size(tag.size()) + tag.size() + size_behind_tag);
  append_bytes(out, summary_value::tag, tag);
}

void append_packed(std::string& out, unsigned field, const std::vector<double>& numbers) {
  append_key(out, field, WireType::length_delimited);
  append_varint(out, numbers.size() * sizeof(double));
  for (const double number : numbers) append_little_endian(out, std::bit_cast<std::uint64_t>(number));
}

struct Buckets {
  std::vector<double> limits = {};  // upper ends
  std::vector<double> counts = {};
};

Buckets buckets_of(const std::vector<double>& numbers, double lowest, double highest) {
  constexpr int most = 30;
  const double width = highest / most - lowest / most;  // not computed from the difference, which may be infinite
  if (!(width > 0)) return {{highest}, {static_cast<double>(numbers.size())}};
  Buckets buckets{std::vector<double>(most), std::vector<double>(most)};
  for (int i = 0; i < most; ++i)
    buckets.limits[static_cast<std::size_t>(i)] = std::lerp(lowest, highest, (i + 1.0) / most);
  for (const double number : numbers) {
    const double place = number / width - lowest / width;
    ++buckets.counts[static_cast<std::size_t>(std::clamp(place, 0.0, most - 1.0))];
  }
  return buckets;
}

// ---- The hparams plugin

// Returns the type under which the plugin shows a value.
HparamType type_of(const Value& value) {
  if (value.is_bool()) return HparamType::boolean;
  return value.is_number() && std::isfinite(value.get<double>()) ? HparamType::number : HparamType::text;
}

std::string to_struct_value(const Value& value) {
  std::string message;
  switch (type_of(value)) {
    case HparamType::boolean:
      append_integer(message, struct_value::bool_value, value.get<bool>() ? 1 : 0);
      break;
    case HparamType::number:
      append_double(message, struct_value::number_value, value.get<double>());
      break;
    case HparamType::text:
      append_bytes(message, struct_value::string_value,
                   base::to_utf8(value.is_string() ? value.get<std::string>() : to_json(value)));
      break;
  }
  return message;
}

std::string to_experiment(const Session& session) {
  std::string message;
  for (const auto& [name, value] : session.hparams) {
    std::string info;
    append_bytes(info, hparam_info::name, name);
    append_integer(info, hparam_info::type, static_cast<std::int64_t>(type_of(value)));
    append_integer(info, hparam_info::differs, 1);  // differs between trials: TensorBoard hides the columns of others
    append_bytes(message, experiment::hparam_infos, info);
  }
  for (const std::string& tag : session.metric_tags) {
    std::string name;
    append_bytes(name, metric_name::tag, tag);
    std::string info;
    append_bytes(info, metric_info::name, name);
    append_bytes(message, experiment::metric_infos, info);
  }
  return message;
}

std::string to_start_info(const Session& session) {
  std::string message;
  for (const auto& [name, value] : session.hparams) {
    std::string entry;
    append_bytes(entry, map_entry::key, name);
    append_bytes(entry, map_entry::value, to_struct_value(value));
    append_bytes(message, session_start_info::hparams, entry);
  }
  append_bytes(message, session_start_info::group_name, session.group_name);
  append_double(message, session_start_info::start_time_secs, session.start_time);
  return message;
}

std::string to_end_info(const Session& session) {
  std::string message;
  append_integer(message, session_end_info::status,
                 static_cast<std::int64_t>(session.success ? SessionStatus::success : SessionStatus::failure));
  append_double(message, session_end_info::end_time_secs, session.end_time);
  return message;
}

// Appends a summary without a value, with the metadata that the plugin reads.
void append_hparams(std::string& records, double wall_time, std::string_view name, unsigned content_field,
                    std::string_view content) {
  std::string data;
  append_integer(data, hparams_plugin_data::version, 0);
  append_bytes(data, content_field, content);
  std::string plugin;
  append_bytes(plugin, plugin_data::plugin_name, "hparams");
  append_bytes(plugin, plugin_data::content, data);
  std::string metadata;
  append_bytes(metadata, summary_metadata::plugin_data, plugin);
  std::string behind_tag;
  append_bytes(behind_tag, summary_value::metadata, metadata);
  std::string value;
  append_value_begin(value, std::string(kSessionTags).append(name), behind_tag.size());
  append_step(records, wall_time, 0, value + behind_tag);
}

// ---- Reading

// Removes the first record and returns its payload; returns nothing at the end or if the rest is not a complete record.
std::optional<std::string_view> take_record(std::string_view& records) {
  if (records.size() < kHeaderSize + kFooterSize) return std::nullopt;
  std::uint64_t size = 0;
  for (std::size_t i = 8; i-- > 0;) size = size << 8 | static_cast<unsigned char>(records[i]);
  if (size > records.size() - kHeaderSize - kFooterSize) return std::nullopt;
  const std::string_view payload = records.substr(kHeaderSize, size);
  records.remove_prefix(kHeaderSize + size + kFooterSize);
  return payload;
}

// Calls `visit` with each value's tag and the number of the field that holds its content.
template <class Visit>
void visit_values(std::string_view summary_message, Visit visit) {
  while (const std::optional<Field> value = take_field(summary_message)) {
    std::string_view message = value->bytes;
    const std::optional<Field> tag = take_field(message);
    const std::optional<Field> content = take_field(message);
    if (tag && content) visit(tag->bytes, content->number);
  }
}

double to_double(std::uint64_t bits, std::size_t bytes) {
  if (bytes == sizeof(double)) return std::bit_cast<double>(bits);
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
}

// Returns the number of a tensor (tensor.proto) without dimensions, in which TensorFlow 2 writes scalars.
std::optional<double> to_number(std::string_view tensor_message) {
  constexpr std::uint64_t kDtFloat = 1;
  constexpr std::uint64_t kDtDouble = 2;
  std::size_t bytes = 0;
  std::optional<double> number;
  while (const std::optional<Field> field = take_field(tensor_message)) {
    if (field->number == tensor::dtype) {
      bytes = field->value == kDtFloat ? sizeof(float) : field->value == kDtDouble ? sizeof(double) : 0;
    } else if (field->number == tensor::shape) {
      if (!field->bytes.empty()) return {};
    } else if (field->type == WireType::length_delimited) {  // the content, or packed numbers
      if (bytes == 0 || field->bytes.size() != bytes) return {};
      std::uint64_t bits = 0;
      for (std::size_t i = bytes; i-- > 0;) bits = bits << 8 | static_cast<unsigned char>(field->bytes[i]);
      number = to_double(bits, bytes);
    } else if (field->type == WireType::four_bytes) {
      number = to_double(field->value, sizeof(float));
    } else if (field->type == WireType::eight_bytes) {
      number = to_double(field->value, sizeof(double));
    }
  }
  return number;
}

// Returns the scalar of a summary's value, if it is one.
std::optional<Scalar> to_scalar(std::string_view message) {
  Scalar scalar;
  bool has_value = false;
  while (const std::optional<Field> field = take_field(message)) {
    if (field->number == summary_value::tag) {
      scalar.tag = field->bytes;
    } else if (field->number == summary_value::simple_value) {
      scalar.value = to_double(field->value, sizeof(float));
      has_value = true;
    } else if (field->number == summary_value::tensor) {
      const std::optional<double> number = to_number(field->bytes);
      if (!number) return {};
      scalar.value = *number;
      has_value = true;
    }
  }
  if (!has_value) return {};
  return scalar;
}

}  // namespace

void append_file_version(std::string& records, double wall_time) {
  append_record(records, [&] {
    append_double(records, event::wall_time, wall_time);
    records += version_fields();
  });
}

void append_step(std::string& records, double wall_time, std::int64_t step, std::string_view summary_message) {
  if (summary_message.empty()) return;
  append_record(records, [&] {
    append_double(records, event::wall_time, wall_time);
    append_integer(records, event::step, step);
    append_bytes(records, event::summary, summary_message);
  });
}

void append_session(std::string& records, const Session& session) {
  const auto append = [&](std::string_view name, unsigned field, const std::string& content) {
    append_hparams(records, session.end_time, name, field, content);
  };
  append("experiment", hparams_plugin_data::experiment, to_experiment(session));
  append("session_start_info", hparams_plugin_data::session_start_info, to_start_info(session));
  append("session_end_info", hparams_plugin_data::session_end_info, to_end_info(session));
}

void append_scalar(std::string& summary_message, std::string_view tag, float value) {
  append_value_begin(summary_message, tag, 1 + sizeof value);
  append_float(summary_message, summary_value::simple_value, value);
}

void append_histogram(std::string& summary_message, std::string_view tag, const std::vector<double>& numbers) {
  const auto [lowest, highest] = std::ranges::minmax(numbers);
  const Buckets buckets = buckets_of(numbers, lowest, highest);
  std::string message;
  append_double(message, histogram::min, lowest);
  append_double(message, histogram::max, highest);
  append_double(message, histogram::num, static_cast<double>(numbers.size()));
  append_double(message, histogram::sum, std::reduce(numbers.begin(), numbers.end()));
  append_double(message, histogram::sum_squares,
                std::transform_reduce(numbers.begin(), numbers.end(), numbers.begin(), 0.0));
  append_packed(message, histogram::bucket_limit, buckets.limits);
  append_packed(message, histogram::bucket, buckets.counts);
  std::string behind_tag;
  append_bytes(behind_tag, summary_value::histo, message);
  append_value_begin(summary_message, tag, behind_tag.size());
  summary_message += behind_tag;
}

bool is_cadres(std::string_view file) {
  const std::optional<std::string_view> first = take_record(file);
  constexpr std::size_t wall_time_size = 1 + sizeof(double);
  return first && first->size() > wall_time_size && first->substr(wall_time_size) == version_fields();
}

FileContent read_content(std::string_view file) {
  FileContent content;
  std::set<std::string, std::less<>> known;
  std::string_view rest = file;
  while (std::optional<std::string_view> payload = take_record(rest)) {
    bool of_session = false;
    while (const std::optional<Field> field = take_field(*payload)) {
      if (field->number == event::wall_time && content.results == 0)
        content.start_time = std::bit_cast<double>(field->value);
      if (field->number != event::summary) continue;
      visit_values(field->bytes, [&](std::string_view tag, unsigned kind) {
        of_session = of_session || kind == summary_value::metadata;
        if (of_session || !known.emplace(tag).second) return;
        (kind == summary_value::histo ? content.histogram_tags : content.scalar_tags).emplace_back(tag);
      });
    }
    if (of_session) break;
    content.results = file.size() - rest.size();
  }
  return content;
}

std::vector<Scalar> take_scalars(std::string_view& records) {
  std::vector<Scalar> scalars;
  while (std::optional<std::string_view> payload = take_record(records)) {
    while (const std::optional<Field> field = take_field(*payload)) {
      if (field->number != event::summary) continue;
      std::string_view summary_message = field->bytes;
      while (const std::optional<Field> value = take_field(summary_message)) {
        if (std::optional<Scalar> scalar = to_scalar(value->bytes)) scalars.push_back(*std::move(scalar));
      }
    }
  }
  return scalars;
}

}  // namespace cadre::loggers::tensorboard
