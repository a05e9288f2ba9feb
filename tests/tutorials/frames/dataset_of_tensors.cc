#include <cadre/data_torch.h>
#include <cadre/train_torch.h>

using namespace cadre;

void train_on(const torch::Tensor& images, const torch::Tensor& labels);

void train_with(const data::Dataset& dataset) {
  // SNIPPET
}
