// The C++ half of torch_vision_test.py: reads cases from a file of torch.save, {"<number>": {"function", "image",
// "numbers"}}, and writes the changed images to another one, {"<number>": image}.
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "cadre/torch/save_dict.h"
#include "cadre/vision.h"

namespace {

using namespace cadre;
using torch::Tensor;
using Numbers = std::vector<double>;

std::int64_t whole(double number) { return static_cast<std::int64_t>(number); }

vision::Interpolation interpolation(double number) {
  return number == 0 ? vision::Interpolation::nearest : vision::Interpolation::bilinear;
}

const std::map<std::string, Tensor (*)(const Tensor&, const Numbers&)> functions{
    {"to_float", [](const Tensor& image, const Numbers&) { return vision::to_float(image); }},
    {"resize",
     [](const Tensor& image, const Numbers& n) { return vision::resize(image, whole(n[0]), whole(n[1]), n[2] != 0); }},
    {"resize_shorter_side",
     [](const Tensor& image, const Numbers& n) { return vision::resize_shorter_side(image, whole(n[0]), n[1] != 0); }},
    {"crop", [](const Tensor& image,
                const Numbers& n) { return vision::crop(image, whole(n[0]), whole(n[1]), whole(n[2]), whole(n[3])); }},
    {"center_crop",
     [](const Tensor& image, const Numbers& n) { return vision::center_crop(image, whole(n[0]), whole(n[1])); }},
    {"pad", [](const Tensor& image, const Numbers& n) { return vision::pad(image, whole(n[0]), n[1]); }},
    {"horizontal_flip", [](const Tensor& image, const Numbers&) { return vision::horizontal_flip(image); }},
    {"vertical_flip", [](const Tensor& image, const Numbers&) { return vision::vertical_flip(image); }},
    {"rotate",
     [](const Tensor& image, const Numbers& n) { return vision::rotate(image, n[0], interpolation(n[1]), n[2]); }},
    {"rgb_to_grayscale", [](const Tensor& image, const Numbers&) { return vision::rgb_to_grayscale(image); }},
    {"adjust_brightness", [](const Tensor& image, const Numbers& n) { return vision::adjust_brightness(image, n[0]); }},
    {"adjust_contrast", [](const Tensor& image, const Numbers& n) { return vision::adjust_contrast(image, n[0]); }},
    {"adjust_saturation", [](const Tensor& image, const Numbers& n) { return vision::adjust_saturation(image, n[0]); }},
    {"adjust_hue", [](const Tensor& image, const Numbers& n) { return vision::adjust_hue(image, n[0]); }},
    {"normalize",
     [](const Tensor& image, const Numbers& n) {
       const auto middle = n.begin() + static_cast<std::ptrdiff_t>(n.size() / 2);
       return vision::Normalize{Numbers(n.begin(), middle), Numbers(middle, n.end())}(image);
     }},
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  SavedItems results;
  for (int i = 0; i < std::stoi(argv[3]); ++i) {
    std::string function;
    Tensor image;
    Numbers numbers;
    load_dict(argv[1],
              {{std::to_string(i), LoadedItems{{"function", function}, {"image", image}, {"numbers", numbers}}}});
    results.emplace_back(std::to_string(i), functions.at(function)(image, numbers).contiguous());
  }
  save_dict(argv[2], results);
}
