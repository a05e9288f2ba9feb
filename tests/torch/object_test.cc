// Tensors and modules in the object store.
#include "cadre/object.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cadre/torch.h"
#include "small_net.h"
#include "support/gpus.h"
#include "support/message_of.h"

namespace cadre {
namespace {

using test_support::message_of;
using ::testing::AllOf;
using ::testing::HasSubstr;

bool lies_in(const torch::Tensor& tensor, const Object& object) {
  const auto* const begin = static_cast<const std::byte*>(tensor.const_data_ptr());
  return begin >= object.bytes().data() && begin + tensor.nbytes() <= object.bytes().data() + object.bytes().size();
}

struct UnlikeNetImpl : torch::nn::Module {
  torch::nn::Conv2d conv = register_module("conv", torch::nn::Conv2d(torch::nn::Conv2dOptions(1, 3, 3).bias(false)));
  torch::nn::Linear other = register_module("other", torch::nn::Linear(2, 2));
};
TORCH_MODULE(UnlikeNet);

TEST(TensorObject, ATensorOfAnyTypeAndShapeComesBackWithoutACopy) {
  torch::manual_seed(1);
  for (const at::ScalarType type : {at::kBool, at::kByte, at::kChar, at::kShort, at::kInt, at::kLong, at::kHalf,
                                    at::kBFloat16, at::kFloat, at::kDouble, at::kComplexFloat}) {
    for (const std::vector<std::int64_t>& shape : {std::vector<std::int64_t>{}, {1}, {7}, {3, 5}, {2, 3, 1, 5}}) {
      const torch::Tensor tensor = (torch::rand(shape) * 100).to(type);
      const ObjectRef ref = put(tensor);
      const Object object = get(ref);
      const torch::Tensor got = get_tensor(object);
      EXPECT_TRUE(torch::equal(got, tensor)) << type << " " << tensor.sizes();
      EXPECT_EQ(got.scalar_type(), type);
      EXPECT_EQ(got.sizes(), tensor.sizes());
      EXPECT_TRUE(lies_in(got, object)) << type << " " << tensor.sizes();
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(got.data_ptr()) % 64, 0u);
    }
  }
}

TEST(TensorObject, EmptyTensorsKeepTheirShapeAndType) {
  for (const std::vector<std::int64_t>& shape : {std::vector<std::int64_t>{0}, {0, 3}, {2, 0, 5}}) {
    const ObjectRef ref = put(torch::empty(shape, torch::kInt16));
    const torch::Tensor got = get_tensor(get(ref));
    EXPECT_EQ(got.sizes(), at::IntArrayRef(shape));
    EXPECT_EQ(got.scalar_type(), torch::kInt16);
  }
}

TEST(TensorObject, ViewsThatAreNotContiguousAreStoredAsTheyLook) {
  const torch::Tensor base = torch::arange(24).reshape({4, 6});
  for (const torch::Tensor& view : {base.t(), base.slice(1, 1, 6, 2), base[2], base.expand({2, 4, 6}), base.flip(0)}) {
    const ObjectRef ref = put(view);
    EXPECT_TRUE(torch::equal(get_tensor(get(ref)), view));
  }
  const torch::Tensor complex = torch::complex(torch::arange(3.F), torch::ones(3)).conj();
  const ObjectRef ref = put(complex);
  EXPECT_TRUE(torch::equal(get_tensor(get(ref)), complex.resolve_conj()));
}

TEST(TensorObject, ATensorKeepsItsMappingAndWritingToItIsPrivate) {
  std::optional<ObjectRef> ref = put(torch::zeros(1000));
  torch::Tensor mine = get_tensor(get(*ref));
  mine.add_(1);
  EXPECT_EQ(get_tensor(get(*ref)).sum().item<double>(), 0);
  ref.reset();
  EXPECT_EQ(mine.sum().item<double>(), 1000);
}

TEST(TensorObject, EqualTensorsAreOneObjectAndGradientsAreNotStored) {
  const ObjectRef plain = put(torch::ones({2, 2}));
  EXPECT_EQ(put(torch::ones({2, 2}, torch::requires_grad())).id(), plain.id());
  EXPECT_NE(put(torch::ones({4})).id(), plain.id()) << "another shape";
}

TEST(TensorObject, TensorsThatCannotBePutAreNamed) {
  EXPECT_THROW(put(torch::Tensor()), InvalidArgument);
  EXPECT_THROW(put(torch::eye(3).to_sparse()), InvalidArgument);
  EXPECT_THAT(message_of<InvalidArgument>([] { put(torch::zeros(2, torch::kComplexDouble)); }),
              HasSubstr("ComplexDouble"));
}

TEST(ModuleObject, AModulesStateBecomesViewsOfTheObject) {
  torch::manual_seed(1);
  SmallNet trained;
  torch::optim::SGD sgd(trained->parameters(), 0.1);
  train_step(trained, sgd);
  const ObjectRef ref = put(trained);
  const Object object = get(ref);
  SmallNet model;
  ASSERT_FALSE(equal_values(values_of(model), values_of(trained)));
  load_object(object, model);
  EXPECT_TRUE(equal_values(values_of(model), values_of(trained)));
  for (const auto& tensor : model->parameters()) EXPECT_TRUE(lies_in(tensor, object)) << tensor.sizes();
  for (const auto& tensor : model->buffers()) EXPECT_TRUE(lies_in(tensor, object)) << tensor.sizes();
  for (const auto& tensor : model->parameters()) EXPECT_TRUE(tensor.requires_grad());
}

TEST(ModuleObject, ALoadedModuleIsTrainedLikeItsOriginalAndTheObjectStaysAsItIs) {
  torch::manual_seed(1);
  SmallNet original;
  const ObjectRef ref = put(original);
  SmallNet model;
  torch::optim::SGD its_sgd(model->parameters(), 0.1);  // made before load_object(): it holds the model's own tensors
  load_object(get(ref), model);
  torch::optim::SGD sgd(original->parameters(), 0.1);
  train_step(original, sgd);
  train_step(model, its_sgd);
  EXPECT_TRUE(equal_values(values_of(model), values_of(original)));
  SmallNet again;
  load_object(get(ref), again);
  EXPECT_FALSE(equal_values(values_of(again), values_of(original)));
}

TEST(ModuleObject, AModuleOfAnotherTypeGetsTheValuesConverted) {
  torch::manual_seed(1);
  SmallNet original;
  const ObjectRef ref = put(original);
  SmallNet model;
  model->to(torch::kDouble);
  load_object(get(ref), model);
  EXPECT_EQ(model->fc->weight.scalar_type(), torch::kDouble);
  EXPECT_TRUE(torch::equal(model->fc->weight.to(torch::kFloat), original->fc->weight));
}

TEST(ModuleObject, AModuleOnAGpuGetsACopy) {
  CADRE_NEEDS_GPUS(1);
  SmallNet original;
  original->to(torch::kCUDA);
  const ObjectRef ref = put(original);
  SmallNet model;
  model->to(torch::kCUDA);
  load_object(get(ref), model);
  EXPECT_TRUE(model->fc->weight.is_cuda());
  EXPECT_TRUE(equal_values(values_of(model), values_of(original)));
}

TEST(ModuleObject, WhatDoesNotFitIsNamedAllAtOnceAndTheModuleStaysAsItIs) {
  const ObjectRef ref = put(SmallNet());
  UnlikeNet model;
  const torch::Tensor before = model->conv->weight.detach().clone();
  EXPECT_THAT(message_of<InvalidArgument>([&] { load_object(get(ref), model); }),
              AllOf(HasSubstr("\"conv.weight\""), HasSubstr("\"other.weight\""), HasSubstr("\"other.bias\""),
                    HasSubstr("\"fc.weight\"")));
  EXPECT_TRUE(torch::equal(before, model->conv->weight));
}

TEST(ModuleObject, OneIsNotTakenForTheOther) {
  SmallNet model;
  const ObjectRef module = put(model);
  const ObjectRef tensor = put(torch::ones(3));
  const ObjectRef text = put("some text that is neither");
  EXPECT_THROW(get_tensor(get(module)), InvalidArgument);
  EXPECT_THROW(load_object(get(tensor), model), InvalidArgument);
  EXPECT_THROW(get_tensor(get(text)), StorageError);
}

}  // namespace
}  // namespace cadre
