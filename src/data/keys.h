// Key columns of sort, groupby and join, in types that Arrow's kernels order and number.
#pragma once

#include <arrow/type_fwd.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/plan.h"

namespace arrow::compute {
class Grouper;
}  // namespace arrow::compute

namespace cadre::data {

// Returns the type of a column as a key: dictionaries have the type of their values, half floats are floats.
std::shared_ptr<arrow::DataType> key_type(const std::shared_ptr<arrow::DataType>& type);

// Throws InvalidArgument, that begins with `what`, unless all columns exist and their types have an order and equality.
void require_keys(const arrow::Schema& schema, const Names& columns, const std::string& what);

// Returns columns of a block in their key types.
arrow::ArrayVector key_columns(const Block& block, const Names& columns);

// Returns columns in their key types in which equal keys have equal bits: all NaN are the same, and -0 is 0.
arrow::ArrayVector with_equal_bits(const arrow::ArrayVector& keys);

// Returns a hash of each row's key. Keys that are equal for KeyNumbers have equal ones; another seed gives others.
std::vector<std::uint64_t> hash_keys(const arrow::ArrayVector& keys, std::uint64_t seed);

// Numbers of different keys, from 0 in the order of their first occurrence. Nulls are equal, NaN are equal, and -0 is
// 0.
class KeyNumbers {
 public:
  // The fields of the key columns, whose types are ignored if they are not key types yet.
  explicit KeyNumbers(const arrow::FieldVector& fields);
  ~KeyNumbers();
  KeyNumbers(const KeyNumbers&) = delete;
  KeyNumbers& operator=(const KeyNumbers&) = delete;

  // Returns the number of each row's key; gives new keys new numbers.
  std::shared_ptr<arrow::UInt32Array> add(const arrow::ArrayVector& keys);
  // Returns the number of each row's key, null for keys that were not added.
  std::shared_ptr<arrow::UInt32Array> find(const arrow::ArrayVector& keys) const;

  std::int64_t count() const;  // of different keys
  arrow::ArrayVector keys() const;

 private:
  // Arrow's numbers are in no particular order within a batch.
  std::unique_ptr<arrow::compute::Grouper> grouper_;
  std::vector<std::uint32_t> numbers_;  // by Arrow's
  std::vector<std::int64_t> arrows_;    // Arrow's numbers, by ours
};

}  // namespace cadre::data
