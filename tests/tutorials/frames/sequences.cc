#include <cadre/train_torch.h>

using namespace cadre;

struct Sentences : torch::data::datasets::Dataset<Sentences, torch::Tensor> {
  torch::Tensor get(std::size_t index) override;
  std::optional<std::size_t> size() const override;
};

void train_on(const Sentences& sentences, const std::vector<std::int64_t>& lengths) {
  // SNIPPET
}
