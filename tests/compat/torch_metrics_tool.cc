// The C++ half of torch_metrics_test.py: reads cases from a file of torch.save, {"<number>": {"metric", "predictions",
// "targets", "numbers"}}, where the numbers are num_classes, top_k, average, and ignore_index or -1000, and writes what
// the metrics come to, {"<number>": values}.
#include <string>
#include <vector>

#include "cadre/torch/save_dict.h"
#include "cadre/train_torch.h"

namespace {

using namespace cadre;

struct Case {
  std::string metric;
  torch::Tensor predictions;
  torch::Tensor targets;
  std::vector<std::int64_t> numbers;
};

// Counts the examples in two batches.
template <class Metric>
Metric counted(Metric metric, const Case& one) {
  const std::int64_t middle = one.targets.size(0) / 3;
  metric.update(one.predictions.slice(0, 0, middle), one.targets.slice(0, 0, middle));
  metric.update(one.predictions.slice(0, middle), one.targets.slice(0, middle));
  return metric;
}

Value value_of(const Case& one) {
  const std::int64_t num_classes = one.numbers.at(0);
  const auto average = static_cast<train::Average>(one.numbers.at(2));
  const auto ignore_index =
      one.numbers.at(3) == -1000 ? std::optional<std::int64_t>() : std::optional(one.numbers.at(3));
  const train::ClassificationOptions options{num_classes, ignore_index, average};
  if (one.metric == "accuracy")
    return counted(train::Accuracy({num_classes, one.numbers.at(1), average, ignore_index}), one).compute();
  if (one.metric == "f1") return counted(train::F1Score(options), one).compute();
  if (one.metric == "auroc") return counted(train::AUROC(options), one).compute();
  if (one.metric == "perplexity") return counted(train::Perplexity(ignore_index), one).compute();
  List values;
  if (one.metric == "f1_by_class") {
    for (const double value : counted(train::F1Score(options), one).compute_by_class()) values.emplace_back(value);
  } else {
    const torch::Tensor counts = counted(train::ConfusionMatrix(options), one).compute().flatten();
    for (std::int64_t i = 0; i < counts.numel(); ++i) values.emplace_back(counts[i].item<std::int64_t>());
  }
  return values;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  SavedItems results;
  for (int i = 0; i < std::stoi(argv[3]); ++i) {
    Case one;
    load_dict(argv[1], {{std::to_string(i), LoadedItems{{"metric", one.metric},
                                                        {"predictions", one.predictions},
                                                        {"targets", one.targets},
                                                        {"numbers", one.numbers}}}});
    results.emplace_back(std::to_string(i), value_of(one));
  }
  save_dict(argv[2], results);
}
