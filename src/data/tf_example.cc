#include "data/tf_example.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "cadre/error.h"

namespace cadre::data {
namespace {

// The form of a field's value in Protocol Buffers.
enum class Wire { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

[[noreturn]] void no_example() {
  throw StorageError("the record is no tf.train.Example: write such ones, or read the file with another program");
}

// Reads the fields of a message.
class Fields {
 public:
  explicit Fields(std::string_view message) : left_(message) {}

  bool next() {
    if (left_.empty()) return false;
    const std::uint64_t tag = take_varint();
    number_ = tag >> 3;
    wire_ = static_cast<Wire>(tag & 7);
    if (number_ == 0) no_example();
    switch (wire_) {
      case Wire::varint:
        varint_ = take_varint();
        return true;
      case Wire::fixed64:
        value_ = take(8);
        return true;
      case Wire::bytes:
        value_ = take(take_varint());
        return true;
      case Wire::fixed32:
        value_ = take(4);
        return true;
    }
    no_example();
  }
  std::uint64_t number() const { return number_; }
  bool is(std::uint64_t number, Wire wire) const { return number_ == number && wire_ == wire; }
  std::uint64_t varint() const { return varint_; }
  std::string_view value() const { return value_; }

  std::uint64_t take_varint() {
    std::uint64_t number = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (left_.empty()) no_example();
      const auto byte = static_cast<unsigned char>(left_.front());
      left_.remove_prefix(1);
      number |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return number;
    }
    no_example();
  }
  bool empty() const { return left_.empty(); }

 private:
  std::string_view take(std::uint64_t size) {
    if (size > left_.size()) no_example();
    const std::string_view taken = left_.substr(0, size);
    left_.remove_prefix(size);
    return taken;
  }

  std::string_view left_;
  std::uint64_t number_ = 0;
  Wire wire_ = Wire::varint;
  std::uint64_t varint_ = 0;
  std::string_view value_;
};

float to_float(std::string_view bytes) {
  float number = 0;
  std::memcpy(&number, bytes.data(), sizeof number);  // little-endian, like all machines that Cadre runs on
  return number;
}

void add_values(std::string_view list, std::vector<std::string_view>& values) {
  for (Fields fields(list); fields.next();) {
    if (fields.is(1, Wire::bytes)) values.push_back(fields.value());
  }
}

void add_values(std::string_view list, std::vector<float>& values) {
  for (Fields fields(list); fields.next();) {
    if (fields.is(1, Wire::fixed32)) values.push_back(to_float(fields.value()));
    if (!fields.is(1, Wire::bytes)) continue;
    if (fields.value().size() % 4 != 0) no_example();
    for (std::size_t at = 0; at < fields.value().size(); at += 4) values.push_back(to_float(fields.value().substr(at)));
  }
}

void add_values(std::string_view list, std::vector<std::int64_t>& values) {
  for (Fields fields(list); fields.next();) {
    if (fields.is(1, Wire::varint)) values.push_back(static_cast<std::int64_t>(fields.varint()));
    if (!fields.is(1, Wire::bytes)) continue;
    for (Fields packed(fields.value()); !packed.empty();)
      values.push_back(static_cast<std::int64_t>(packed.take_varint()));
  }
}

// Adds to the values of a kind; those of another kind are dropped.
template <class Values>
void add_kind(std::string_view list, FeatureValues& values) {
  if (!std::holds_alternative<Values>(values)) values = Values();
  add_values(list, std::get<Values>(values));
}

FeatureValues values_of(std::string_view feature) {
  FeatureValues values;
  for (Fields fields(feature); fields.next();) {
    if (fields.is(1, Wire::bytes)) add_kind<std::vector<std::string_view>>(fields.value(), values);
    if (fields.is(2, Wire::bytes)) add_kind<std::vector<float>>(fields.value(), values);
    if (fields.is(3, Wire::bytes)) add_kind<std::vector<std::int64_t>>(fields.value(), values);
  }
  return values;
}

Feature parse_entry(std::string_view entry) {
  Feature feature;
  for (Fields fields(entry); fields.next();) {
    if (fields.is(1, Wire::bytes)) feature.name = fields.value();
    if (fields.is(2, Wire::bytes)) feature.values = values_of(fields.value());
  }
  return feature;
}

}  // namespace

std::vector<Feature> parse_example(std::string_view message) {
  std::vector<Feature> features;
  for (Fields fields(message); fields.next();) {
    if (!fields.is(1, Wire::bytes)) continue;
    for (Fields entries(fields.value()); entries.next();) {
      if (!entries.is(1, Wire::bytes)) continue;
      Feature feature = parse_entry(entries.value());
      const auto before = std::ranges::find(features, feature.name, &Feature::name);
      if (before == features.end()) {
        features.push_back(std::move(feature));
      } else {
        *before = std::move(feature);
      }
    }
  }
  return features;
}

}  // namespace cadre::data
