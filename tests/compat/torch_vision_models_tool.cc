// The C++ half of torch_vision_models_test.py: <model> <classes> <channels> <weights> <images> <made>. Reads a model's
// weights from a file of torch.save or of safetensors, and images from {"images"}, and writes {"scores", "trained",
// "state"}: the scores in evaluation and in training mode, and the model's state after that.
#include <iostream>
#include <map>
#include <string>

#include "cadre/torch/safetensors.h"
#include "cadre/torch/save_dict.h"
#include "cadre/vision.h"

int main(int argc, char** argv) {
  using namespace cadre;
  if (argc != 7) return 2;
  const std::map<std::string, vision::ResNet (*)(const vision::ResNetOptions&)> models{
      {"resnet18", vision::resnet18},   {"resnet34", vision::resnet34},   {"resnet50", vision::resnet50},
      {"resnet101", vision::resnet101}, {"resnet152", vision::resnet152},
  };
  vision::ResNet model = models.at(argv[1])({.num_classes = std::stoi(argv[2]), .in_channels = std::stoi(argv[3])});
  const std::string weights = argv[4];
  weights.ends_with(".safetensors") ? load_safetensors(weights, model) : void(load_state(weights, model));
  torch::Tensor images;
  load_dict(argv[5], {{"images", images}});
  const torch::NoGradGuard no_gradients;
  model->eval();
  const torch::Tensor scores = model(images);
  model->train();
  const torch::Tensor trained = model(images);
  save_dict(argv[6], {{"scores", scores}, {"trained", trained}, {"state", *model}});
}
