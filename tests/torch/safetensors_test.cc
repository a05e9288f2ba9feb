#include "cadre/torch/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "small_net.h"
#include "support/message_of.h"
#include "support/temporary_directory.h"

// tests/compat/torch_safetensors_test.py exchanges files with Python.
namespace cadre {
namespace {

using test_support::message_of;
using test_support::TemporaryDirectory;
using ::testing::AllOf;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

template <class ErrorType>
std::string fault_of(const fs::path& file, SmallNet& model) {
  const auto before = values_of(model);
  const std::string fault = message_of<ErrorType>([&] { load_safetensors(file, model); });
  EXPECT_TRUE(equal_values(values_of(model), before)) << "the model is unchanged";
  return fault;
}

void write(const fs::path& file, const std::string& text) { std::ofstream(file, std::ios::binary) << text; }

TEST(Safetensors, AModelComesBack) {
  const TemporaryDirectory directory;
  SmallNet model;
  write(directory / "model.safetensors", "an old file, which is replaced");
  save_safetensors(directory / "model.safetensors", model);
  SmallNet loaded;
  ASSERT_FALSE(equal_values(values_of(loaded), values_of(model)));
  load_safetensors(directory / "model.safetensors", loaded);
  EXPECT_TRUE(equal_values(values_of(loaded), values_of(model)));
}

TEST(Safetensors, AFileThatIsNoneOrCutIsNamed) {
  const TemporaryDirectory directory;
  SmallNet model;
  const fs::path file = directory / "model.safetensors";
  EXPECT_THAT(fault_of<NotFound>(file, model), HasSubstr("there is no file " + file.string()));
  save_safetensors(file, model);
  const auto size = fs::file_size(file);
  for (const std::uintmax_t cut : {size - 1, size / 2, std::uintmax_t{100}, std::uintmax_t{5}, std::uintmax_t{0}}) {
    fs::resize_file(file, cut);
    EXPECT_THAT(fault_of<StorageError>(file, model), HasSubstr(file.string())) << cut;
  }
  write(file, "this is no such file at all");
  EXPECT_THAT(fault_of<StorageError>(file, model), HasSubstr("it is no safetensors file, or is cut"));
}

TEST(Safetensors, AllTensorsThatDoNotFitAreNamed) {
  const TemporaryDirectory directory;
  save_safetensors(directory / "linear", torch::nn::Sequential(torch::nn::Linear(2, 3)));
  SmallNet model;
  EXPECT_THAT(fault_of<InvalidArgument>(directory / "linear", model),
              AllOf(HasSubstr("\"fc.weight\" [10, 72] of the model is missing"),
                    HasSubstr("\"0.bias\" [3] of the file is unknown")));
}

TEST(Safetensors, FilesThatAreNotWhatTheIndexSaysAreNamed) {
  const TemporaryDirectory directory;
  SmallNet model;
  const fs::path index = directory / "model.safetensors.index.json";
  save_safetensors(directory / "a.safetensors", model);
  write(index, R"({"weight_map": {"conv.weight": "a.safetensors"}})");
  EXPECT_THAT(fault_of<StorageError>(index, model),
              AllOf(HasSubstr("a.safetensors"), HasSubstr("does not name for it")));
  write(index, R"({"weight_map": {"conv.weight": "b.safetensors"}})");
  EXPECT_THAT(fault_of<NotFound>(index, model), HasSubstr("b.safetensors"));
  write(index, R"({"weight_map": {"conv.weight": "../a.safetensors"}})");
  EXPECT_THAT(fault_of<StorageError>(index, model), HasSubstr("not one beside it"));
  write(index, R"({"metadata": {}})");
  EXPECT_THAT(fault_of<StorageError>(index, model), HasSubstr("no \"weight_map\""));
  std::string names;
  for (const auto& item : model->named_parameters()) names += "\"" + item.key() + "\": \"a.safetensors\", ";
  for (const auto& item : model->named_buffers()) names += "\"" + item.key() + "\": \"a.safetensors\", ";
  write(index, "{\"weight_map\": {" + names + "\"extra\": \"a.safetensors\"}}");
  EXPECT_THAT(fault_of<StorageError>(index, model), HasSubstr("it lacks \"extra\""));
}

TEST(Safetensors, AnyNameOfATensorThatSeveralShareIsEnough) {
  const TemporaryDirectory directory;
  const fs::path file = directory / "model.safetensors";
  for (const auto& there : std::vector<std::vector<std::string>>{{"a"}, {"b"}, {"c"}, {"b", "c"}, {"a", "c"}}) {
    torch::nn::Module saved;
    for (const std::string& name : there) saved.register_parameter(name, torch::full({2}, 3.F));
    save_safetensors(file, saved);
    torch::nn::Module model;
    const torch::Tensor values = torch::zeros(2);
    for (const char* name : {"a", "b", "c"}) model.register_parameter(name, values);
    load_safetensors(file, model);
    EXPECT_TRUE(torch::equal(values, torch::full({2}, 3.F))) << there.front();
  }
}

TEST(Safetensors, ATensorThatTheFormatLacksIsNamed) {
  const TemporaryDirectory directory;
  struct Complex : torch::nn::Module {
    torch::Tensor values = register_buffer("values", torch::zeros(2, torch::kComplexDouble));
  };
  EXPECT_THAT(message_of<InvalidArgument>([&] { save_safetensors(directory / "it", Complex()); }),
              HasSubstr("\"values\" has the type ComplexDouble"));
  EXPECT_FALSE(fs::exists(directory / "it"));
}

}  // namespace
}  // namespace cadre
