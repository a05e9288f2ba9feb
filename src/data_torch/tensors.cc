#include "cadre/data_torch.h"

#include <functional>
#include <memory>
#include <numeric>
#include <type_traits>

#include "cadre/train_torch/group.h"

namespace cadre::data {
namespace {

// Calls `use` with the C++ type of a tensor's numbers; returns false if Arrow has no such type.
template <class Use>
bool with_type_of(torch::ScalarType type, Use use) {
  switch (type) {
    case torch::kInt8:
      use(std::type_identity<std::int8_t>());
      return true;
    case torch::kInt16:
      use(std::type_identity<std::int16_t>());
      return true;
    case torch::kInt32:
      use(std::type_identity<std::int32_t>());
      return true;
    case torch::kInt64:
      use(std::type_identity<std::int64_t>());
      return true;
    case torch::kUInt8:
      use(std::type_identity<std::uint8_t>());
      return true;
    case torch::kFloat32:
      use(std::type_identity<float>());
      return true;
    case torch::kFloat64:
      use(std::type_identity<double>());
      return true;
    default:
      return false;
  }
}

std::optional<torch::ScalarType> tensor_type(const std::string& numbers) {
  static const std::map<std::string, torch::ScalarType> types{
      {"int8", torch::kInt8},   {"int16", torch::kInt16}, {"int32", torch::kInt32},    {"int64", torch::kInt64},
      {"uint8", torch::kUInt8}, {"float", torch::kFloat}, {"double", torch::kFloat64},
  };
  const auto found = types.find(numbers);
  return found == types.end() ? std::nullopt : std::optional(found->second);
}

template <class T>
torch::Tensor copied(const Batch& batch, std::string_view column, const std::vector<std::int64_t>& shape,
                     torch::ScalarType type) {
  auto numbers = std::make_shared<std::vector<T>>(batch.to_vector<T>(column));
  T* const data = numbers->data();
  return torch::from_blob(data, shape, [numbers](void*) {}, type);
}

IterBatchesOptions to_options(const TorchBatchesOptions& options) {
  return {.batch_size = options.batch_size,
          .drop_last = options.drop_last,
          .prefetch_batches = options.prefetch_batches,
          .local_shuffle_buffer_size = options.local_shuffle_buffer_size,
          .local_shuffle_seed = options.local_shuffle_seed,
          .epoch = options.epoch};
}

}  // namespace

torch::Tensor to_tensor(const Batch& batch, std::string_view column) {
  std::vector<std::int64_t> shape = batch.row_shape(column);
  shape.insert(shape.begin(), batch.num_rows());
  const std::string numbers = batch.number_type(column);
  if (numbers == "bool") return copied<std::uint8_t>(batch, column, shape, torch::kBool);
  if (numbers == "uint16" || numbers == "uint32" || numbers == "uint64")
    return copied<std::int64_t>(batch, column, shape, torch::kInt64);
  const auto type = tensor_type(numbers);
  if (!type)
    throw InvalidArgument("column \"" + std::string(column) + "\" is of " + batch.type(column) +
                          ", which no tensor has: leave it out with select_columns");
  torch::Tensor tensor;
  with_type_of(*type, [&]<class T>(std::type_identity<T>) {
    const std::span<const T> values = batch.values<T>(column);
    tensor = torch::from_blob(const_cast<T*>(values.data()), shape, [batch](void*) {}, *type);
  });
  return tensor;
}

TensorBatch to_tensors(const Batch& batch) {
  TensorBatch tensors;
  for (const std::string& column : batch.columns()) tensors.emplace(column, to_tensor(batch, column));
  return tensors;
}

Column to_column(const torch::Tensor& tensor) {
  if (!tensor.defined() || tensor.dim() == 0)
    throw InvalidArgument("a tensor without dimensions is no column: its rows are the first dimension");
  const auto rows = tensor.detach().cpu().contiguous();
  const auto owner = std::make_shared<const torch::Tensor>(rows);
  const auto count = static_cast<std::size_t>(rows.numel());
  if (rows.scalar_type() == torch::kBool && rows.dim() == 1) {
    const bool* const values = static_cast<const bool*>(rows.const_data_ptr());
    return std::vector<bool>(values, values + count);
  }
  std::optional<Column> column;
  const bool has_type = with_type_of(rows.scalar_type(), [&]<class T>(std::type_identity<T>) {
    column = Column::view<T>({static_cast<const T*>(rows.const_data_ptr()), count}, owner, rows.sizes().slice(1).vec());
  });
  if (!has_type)
    throw InvalidArgument(std::string("a tensor of ") + torch::toString(rows.scalar_type()) +
                          " is no column: convert it, to float for example");
  return *std::move(column);
}

Dataset from_tensors(const std::vector<std::pair<std::string, torch::Tensor>>& columns) {
  std::vector<std::pair<std::string, Column>> made;
  for (const auto& [name, tensor] : columns) {
    try {
      made.emplace_back(name, to_column(tensor));
    } catch (const InvalidArgument& error) {
      throw InvalidArgument("column \"" + name + "\": " + error.what());
    }
  }
  return from_batches({Batch(std::move(made))});
}

TorchBatches::Iterator::Iterator(Batches::Iterator batches, const TorchBatchesOptions& options)
    : batches_(std::move(batches)), options_(options) {
  if (!options_.device) options_.device = train::get_device();
  convert();
}

TorchBatches::Iterator& TorchBatches::Iterator::operator++() {
  ++batches_;
  convert();
  return *this;
}

void TorchBatches::Iterator::convert() {
  tensors_.clear();
  if (batches_ == std::default_sentinel) return;
  for (const auto& [column, type] : options_.dtypes) static_cast<void>(batches_->type(column));  // checks its name
  tensors_ = to_tensors(*batches_);
  for (auto& [column, tensor] : tensors_) {
    const auto type = options_.dtypes.find(column);
    tensor = tensor.to(*options_.device, type == options_.dtypes.end() ? tensor.scalar_type() : type->second);
  }
}

TorchBatches iter_torch_batches(const Dataset& dataset, const TorchBatchesOptions& options) {
  return {dataset.iter_batches(to_options(options)), options};
}

TorchBatches iter_torch_batches(const Shard& shard, const TorchBatchesOptions& options) {
  return {shard.iter_batches(to_options(options)), options};
}

}  // namespace cadre::data
