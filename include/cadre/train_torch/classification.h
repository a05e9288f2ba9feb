/// \file
/// Metrics of classifiers over all ranks, with the values of torchmetrics 1.9. Each rank counts the examples that it
/// has seen, and compute() combines those of all ranks; ranks exchange nothing before that.
///
///     train::Accuracy accuracy({.num_classes = 10});
///     for (auto& batch : loader) accuracy.update(model(batch.data), batch.target);
///     train::report({{"accuracy", accuracy.compute()}});
///
/// Predictions are either scores of classes, of the shape [examples, classes, ...], used only by their order, or the
/// predicted classes, of the shape [examples, ...]; targets are classes, [examples, ...]. Examples that
/// Remainder::pad repeats count twice: give the loader of an evaluation Remainder::keep.
///
/// Threads: each object in one thread at a time.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace cadre::train {

/// Average of a metric over classes.
enum class Average {
  micro,     ///< examples count the same: the value of all classes together
  macro,     ///< classes count the same: the mean over those that occur in the targets or predictions
  weighted,  ///< classes count by their examples in the targets
};

/// Options of ConfusionMatrix, F1Score and AUROC.
struct ClassificationOptions {
  std::int64_t num_classes = 0;                   ///< above 1
  std::optional<std::int64_t> ignore_index = {};  ///< a target whose examples do not count; default: none
  std::optional<Average> average = {};            ///< default: macro; unused by ConfusionMatrix
};

/// Counts predictions by target and predicted class.
class ConfusionMatrix {
 public:
  /// Throws InvalidArgument for options outside their ranges.
  explicit ConfusionMatrix(const ClassificationOptions& options);
  /// Counts a batch, on its device. Throws InvalidArgument for shapes that do not belong together; classes outside of 0
  /// to num_classes - 1 are found by compute().
  void update(const torch::Tensor& predictions, const torch::Tensor& targets);
  /// Returns the counts of all ranks, whole numbers of the shape [num_classes, num_classes]: targets by predictions.
  /// Collective. Throws InvalidArgument on all ranks if one has seen a class outside of 0 to num_classes - 1;
  /// EngineError if another rank has ended.
  torch::Tensor compute() const;
  void reset();  ///< discards what this rank has counted

 private:
  ClassificationOptions options_;
  torch::Tensor counts_;  // by target * num_classes + prediction; the last one: outside of the classes; on a device
};

/// The share of examples whose class is predicted correctly.
class Accuracy {
 public:
  /// Options of Accuracy.
  struct Options {
    std::int64_t num_classes = 0;      ///< above 1
    std::int64_t top_k = 1;            ///< the target must be among so many best scores; 1 to num_classes - 1
    Average average = Average::micro;  ///< default: the share of correct examples
    std::optional<std::int64_t> ignore_index = {};  ///< a target whose examples do not count
  };
  /// Throws InvalidArgument for options outside their ranges.
  explicit Accuracy(const Options& options);
  /// Counts a batch; see ConfusionMatrix::update. With top_k above 1 predictions must be scores, and a target outside
  /// the classes is an InvalidArgument here, not of compute().
  void update(const torch::Tensor& predictions, const torch::Tensor& targets);
  /// Returns the accuracy of all ranks' examples, 0 to 1; NaN if there are none. Collective, with the errors of
  /// ConfusionMatrix::compute.
  double compute() const;
  void reset();  ///< discards what this rank has counted

 private:
  Options options_;
  ConfusionMatrix matrix_;  // of top_k 1
  torch::Tensor right_;     // of a larger top_k: correct and all examples by target, [2, num_classes], on a device
};

/// The harmonic mean of precision and recall.
class F1Score {
 public:
  /// Throws InvalidArgument for options outside their ranges.
  explicit F1Score(const ClassificationOptions& options);
  /// Counts a batch; see ConfusionMatrix::update.
  void update(const torch::Tensor& predictions, const torch::Tensor& targets) { matrix_.update(predictions, targets); }
  /// Returns the average over classes, 0 to 1; NaN without examples. Collective, with the errors of
  /// ConfusionMatrix::compute, here and below.
  double compute() const;
  /// Returns the scores by class; 0 for one that does not occur. A binary classifier's score is that of class 1.
  std::vector<double> compute_by_class() const;
  void reset() { matrix_.reset(); }  ///< discards what this rank has counted

 private:
  ClassificationOptions options_;
  ConfusionMatrix matrix_;
};

/// The area under the receiver operating characteristic: the probability that an example of a class has a higher score
/// for it than an example of another class. Keeps the scores of all examples; compute() brings them to all ranks.
class AUROC {
 public:
  /// Makes the metric of a binary classifier, or with num_classes above 2 of each class against the others. The average
  /// is macro or weighted, over classes that some examples have and some have not. Throws InvalidArgument for options
  /// outside their ranges.
  explicit AUROC(const ClassificationOptions& options = {.num_classes = 2});
  /// Keeps a batch on the CPU. The scores of a binary classifier have the shape [examples], and are those of class 1.
  /// Throws InvalidArgument for other shapes, scores that are NaN, and targets outside the classes.
  void update(const torch::Tensor& scores, const torch::Tensor& targets);
  /// Returns the area, 0 to 1; NaN without examples of two classes. Collective; throws EngineError if another
  /// rank has ended.
  double compute() const;
  void reset();  ///< discards what this rank has kept

 private:
  ClassificationOptions options_;
  std::vector<torch::Tensor> scores_;
  std::vector<torch::Tensor> targets_;
};

/// Perplexity of a language model: exp of the mean cross entropy of its targets.
class Perplexity {
 public:
  /// `ignore_index`: targets that do not count, such as padding.
  explicit Perplexity(std::optional<std::int64_t> ignore_index = {}) : ignore_index_(ignore_index) {}
  /// Counts a batch of logits, [..., words], and targets, [...], on the logits' device, in single precision at least.
  /// Throws InvalidArgument for shapes that do not belong together; targets that are no words are found by compute().
  void update(const torch::Tensor& logits, const torch::Tensor& targets);
  /// Returns the perplexity of all ranks' targets; NaN if there are none. Collective. Throws InvalidArgument on all
  /// ranks if one has counted a target outside of 0 to words - 1; EngineError if another rank has ended.
  double compute() const;
  void reset() { sums_ = torch::Tensor(); }  ///< discards what this rank has counted

 private:
  std::optional<std::int64_t> ignore_index_;
  torch::Tensor sums_;  // sum of the cross entropies, their number, and that of targets which are no words
};

}  // namespace cadre::train
