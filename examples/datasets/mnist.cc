#include "datasets/mnist.h"

#include <algorithm>
#include <string>
#include <vector>

#include "cadre/error.h"
#include "datasets/idx.h"

namespace datasets {
namespace {

constexpr std::size_t side = 28;
constexpr std::uint8_t class_count = 10;

std::filesystem::path find_file(const std::filesystem::path& folder, const std::string& name) {
  const auto plain = folder / name;
  const auto gzipped = folder / (name + ".gz");
  if (std::filesystem::exists(plain)) return plain;
  if (std::filesystem::exists(gzipped)) return gzipped;
  throw cadre::NotFound("no data file " + plain.string() +
                        " (nor with .gz); `make setup`, or tools/fetch_mnist.py, fetches MNIST into data/mnist");
}

// Returns a tensor in the memory of an IDX array. The tensor is never written to.
torch::Tensor to_tensor(const IdxArray& array, const std::vector<std::int64_t>& sizes) {
  auto* const elements = const_cast<std::uint8_t*>(array.elements.data());
  return torch::from_blob(elements, sizes, [memory = array.memory](void*) {}, torch::kUInt8);
}

}  // namespace

Mnist::Mnist(const std::filesystem::path& folder, MnistPart part, Normalisation normalisation)
    : normalisation_(normalisation) {
  const std::string prefix = part == MnistPart::train ? "train" : "t10k";
  const auto image_file = find_file(folder, prefix + "-images-idx3-ubyte");
  const auto label_file = find_file(folder, prefix + "-labels-idx1-ubyte");
  const IdxArray images = read_idx(image_file, 3);
  const IdxArray labels = read_idx(label_file, 1);
  if (images.dimensions[1] != side || images.dimensions[2] != side) {
    throw cadre::StorageError("data file " + image_file.string() + " has images of " +
                              std::to_string(images.dimensions[1]) + "x" + std::to_string(images.dimensions[2]) +
                              " pixels, expected 28x28");
  }
  if (images.dimensions[0] != labels.dimensions[0]) {
    throw cadre::StorageError("data file " + image_file.string() + " has " + std::to_string(images.dimensions[0]) +
                              " images but " + label_file.string() + " has " + std::to_string(labels.dimensions[0]) +
                              " labels");
  }
  const auto wrong =
      std::find_if(labels.elements.begin(), labels.elements.end(), [](auto label) { return label >= class_count; });
  if (wrong != labels.elements.end()) {
    throw cadre::StorageError("data file " + label_file.string() + " has the label " + std::to_string(*wrong) + " at " +
                              std::to_string(wrong - labels.elements.begin()) + ", expected 0 to 9");
  }
  const auto count = static_cast<std::int64_t>(images.dimensions[0]);
  images_ = to_tensor(images, {count, 1, side, side});
  labels_ = to_tensor(labels, {count});
}

Mnist::Batch Mnist::batch(const torch::Tensor& images, const torch::Tensor& labels) const {
  return {images.to(torch::kFloat).div_(255).sub_(normalisation_.mean).div_(normalisation_.deviation),
          labels.to(torch::kLong)};
}

Mnist::Batch Mnist::at(const torch::Tensor& indices) const {
  return batch(images_.index_select(0, indices), labels_.index_select(0, indices));
}

Mnist::Batch Mnist::all() const { return batch(images_, labels_); }

}  // namespace datasets
