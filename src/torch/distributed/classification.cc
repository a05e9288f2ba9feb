#include "cadre/train_torch/classification.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "cadre/error.h"
#include "cadre/train_torch/group.h"

namespace cadre::train {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

[[noreturn]] void refuse_metric(const char* metric, const std::string& why) {
  throw InvalidArgument(std::string(metric) + ": " + why);
}

template <class Options>
const Options& with_classes(const char* metric, const Options& options) {
  if (options.num_classes < 2)
    refuse_metric(metric, "num_classes is " + std::to_string(options.num_classes) + "; there are at least 2");
  return options;
}

void check_targets(const char* metric, const torch::Tensor& targets) {
  if (targets.is_floating_point()) refuse_metric(metric, "targets are classes, and these are floating-point numbers");
}

// Predictions as classes or, for top_k above 1, scores; and targets; of all examples that count, in one dimension.
struct Flat {
  torch::Tensor predictions;  // [n], or [n, classes]
  torch::Tensor targets;      // [n]
};

Flat flatten(const char* metric, const torch::Tensor& predictions, const torch::Tensor& targets,
             std::int64_t num_classes, std::optional<std::int64_t> ignore_index, bool keep_scores) {
  if (!predictions.defined() || !targets.defined()) refuse_metric(metric, "a tensor is undefined");
  const auto shapes = [&] {
    return "predictions " + c10::str(predictions.sizes()) + " and targets " + c10::str(targets.sizes());
  };
  check_targets(metric, targets);
  const bool are_scores = predictions.dim() > 1 && predictions.dim() == targets.dim() + 1;
  if (are_scores && predictions.size(1) != num_classes)
    refuse_metric(metric,
                  shapes() + ": scores of " + std::to_string(num_classes) + " classes are [examples, classes, ...]");
  torch::Tensor without_scores = are_scores ? predictions.select(1, 0) : predictions;
  if (without_scores.sizes() != targets.sizes()) refuse_metric(metric, shapes() + " do not belong together");
  if (!are_scores && (keep_scores || predictions.is_floating_point()))
    refuse_metric(metric, shapes() + ": scores of all classes are needed, [examples, classes, ...]");
  Flat flat{.predictions = !are_scores   ? predictions.flatten()
                           : keep_scores ? predictions.movedim(1, -1).reshape({-1, num_classes})
                                         : predictions.argmax(1).flatten(),
            .targets = targets.flatten().to(predictions.device(), torch::kLong)};
  if (ignore_index) {
    const torch::Tensor counts = flat.targets.ne(*ignore_index);
    flat = {flat.predictions.index({counts}), flat.targets.index({counts})};
  }
  return flat;
}

// Adds to a tensor that may not be there yet.
void accumulate(torch::Tensor& total, const torch::Tensor& part) {
  total = total.defined() ? total.to(part.device()) + part : part;
}

torch::Tensor over_ranks(const torch::Tensor& own, std::vector<std::int64_t> shape, torch::ScalarType type) {
  torch::Tensor total = own.defined() ? own.cpu().to(type) : torch::zeros(shape, type);
  all_reduce(total);
  return total;
}

torch::Tensor safe_divide(const torch::Tensor& a, const torch::Tensor& b) {
  return torch::where(b == 0, torch::zeros_like(a), a / torch::where(b == 0, torch::ones_like(b), b));
}

// Returns the average of values by class; `occurs`: which of them count.
double average_of(const torch::Tensor& values, Average average, const torch::Tensor& occurs,
                  const torch::Tensor& examples) {
  const torch::Tensor weights = average == Average::weighted ? examples : occurs.to(torch::kDouble);
  const double sum = weights.sum().item<double>();
  return sum > 0 ? (weights * values).sum().item<double>() / sum : kNone;
}

// Right and wrong predictions by class.
struct Counts {
  explicit Counts(const torch::Tensor& matrix)
      : right(matrix.diag().to(torch::kDouble)),
        missed(matrix.sum(1).to(torch::kDouble) - right),
        wrong(matrix.sum(0).to(torch::kDouble) - right) {}

  torch::Tensor examples() const { return right + missed; }
  torch::Tensor occurs() const { return right + missed + wrong > 0; }

  torch::Tensor right;
  torch::Tensor missed;  // examples of the class for which another one was predicted
  torch::Tensor wrong;   // examples of others for which it was predicted
};

torch::Tensor f1_of(const Counts& counts) {
  return safe_divide(2 * counts.right, 2 * counts.right + counts.missed + counts.wrong);
}

// Returns the tensors of all ranks, which may have different numbers of rows, as one.
torch::Tensor all_rows(const torch::Tensor& own) {
  const std::vector<torch::Tensor> counts = all_gather(torch::tensor(own.size(0)));
  std::int64_t most = 0;
  for (const torch::Tensor& count : counts) most = std::max(most, count.item<std::int64_t>());
  std::vector<std::int64_t> shape = own.sizes().vec();
  shape[0] = most;
  torch::Tensor padded = torch::zeros(shape, own.options());
  padded.narrow(0, 0, own.size(0)).copy_(own);
  std::vector<torch::Tensor> rows;
  for (const torch::Tensor& of_rank : all_gather(padded))
    rows.push_back(of_rank.narrow(0, 0, counts[rows.size()].item<std::int64_t>()));
  return torch::cat(rows);
}

// Returns the area for one class; NaN if all examples, or none, are of it. By ranks of the scores, where equal ones
// have their mean rank. Source: Mann and Whitney, "On a test of whether one of two random variables is stochastically
// larger than the other" (1947).
double area(const torch::Tensor& scores, const torch::Tensor& is_of_class) {
  const auto positive = is_of_class.sum().item<double>();
  const double negative = static_cast<double>(is_of_class.numel()) - positive;
  if (positive == 0 || negative == 0) return kNone;
  const auto [sorted, order] = scores.sort();
  const auto [values, groups, sizes] =
      torch::unique_consecutive(sorted, /*return_inverse=*/true, /*return_counts=*/true);
  const torch::Tensor last = sizes.cumsum(0).to(torch::kDouble);
  const torch::Tensor mean_rank = last - (sizes.to(torch::kDouble) - 1) / 2;
  const torch::Tensor ranks = mean_rank.index_select(0, groups);
  const double sum = (ranks * is_of_class.index_select(0, order).to(torch::kDouble)).sum().item<double>();
  return (sum - positive * (positive + 1) / 2) / (positive * negative);
}

}  // namespace

ConfusionMatrix::ConfusionMatrix(const ClassificationOptions& options)
    : options_(with_classes("ConfusionMatrix", options)) {}

void ConfusionMatrix::update(const torch::Tensor& predictions, const torch::Tensor& targets) {
  const torch::NoGradGuard no_gradients;
  const std::int64_t classes = options_.num_classes;
  const Flat flat = flatten("ConfusionMatrix", predictions, targets, classes, options_.ignore_index, false);
  const auto is_class = [&](const torch::Tensor& one) { return (one >= 0).logical_and(one < classes); };
  const torch::Tensor places = torch::where(is_class(flat.targets).logical_and(is_class(flat.predictions)),
                                            flat.targets * classes + flat.predictions, classes * classes);
  accumulate(counts_, torch::bincount(places, {}, classes * classes + 1));
}

torch::Tensor ConfusionMatrix::compute() const {
  const std::int64_t classes = options_.num_classes;
  const torch::Tensor counts = over_ranks(counts_, {classes * classes + 1}, torch::kLong);
  if (const auto outside = counts[-1].item<std::int64_t>(); outside > 0) {
    throw InvalidArgument("ConfusionMatrix: targets or predictions of " + std::to_string(outside) +
                          " examples are none of the " + std::to_string(classes) + " classes");
  }
  return counts.slice(0, 0, -1).view({classes, classes});
}

void ConfusionMatrix::reset() { counts_ = torch::Tensor(); }

Accuracy::Accuracy(const Options& options)
    : options_(with_classes("Accuracy", options)),
      matrix_({.num_classes = options.num_classes, .ignore_index = options.ignore_index}) {
  if (options.top_k >= 1 && options.top_k < options.num_classes) return;
  refuse_metric("Accuracy", "top_k is " + std::to_string(options.top_k) + " of " + std::to_string(options.num_classes) +
                                " classes; it must be at least 1, and less than they are");
}

void Accuracy::update(const torch::Tensor& predictions, const torch::Tensor& targets) {
  if (options_.top_k == 1) return matrix_.update(predictions, targets);
  const torch::NoGradGuard no_gradients;
  const std::int64_t classes = options_.num_classes;
  const Flat flat = flatten("Accuracy", predictions, targets, classes, options_.ignore_index, true);
  if (flat.targets.numel() == 0) return;
  if (flat.targets.min().item<std::int64_t>() < 0 || flat.targets.max().item<std::int64_t>() >= classes)
    refuse_metric("Accuracy", "a target is none of the " + std::to_string(classes) + " classes");
  const torch::Tensor best = std::get<1>(flat.predictions.topk(options_.top_k, 1));
  const torch::Tensor is_right = best.eq(flat.targets.unsqueeze(1)).any(1);
  const torch::Tensor all = torch::bincount(flat.targets, {}, classes);
  accumulate(right_, torch::stack({torch::bincount(flat.targets.index({is_right}), {}, classes), all}));
}

double Accuracy::compute() const {
  torch::Tensor right;
  torch::Tensor examples;
  torch::Tensor occurs;
  if (options_.top_k == 1) {
    const Counts counts(matrix_.compute());
    right = counts.right;
    examples = counts.examples();
    occurs = counts.occurs();
  } else {
    const torch::Tensor counts = over_ranks(right_, {2, options_.num_classes}, torch::kLong).to(torch::kDouble);
    right = counts[0];
    examples = counts[1];
    occurs = examples > 0;
  }
  const double all = examples.sum().item<double>();
  if (all == 0) return kNone;
  if (options_.average == Average::micro) return right.sum().item<double>() / all;
  return average_of(safe_divide(right, examples), options_.average, occurs, examples);
}

void Accuracy::reset() {
  matrix_.reset();
  right_ = torch::Tensor();
}

F1Score::F1Score(const ClassificationOptions& options) : options_(with_classes("F1Score", options)), matrix_(options) {}

double F1Score::compute() const {
  const Counts counts(matrix_.compute());
  const double all = counts.examples().sum().item<double>();
  if (all == 0) return kNone;
  const Average average = options_.average.value_or(Average::macro);
  if (average == Average::micro) return counts.right.sum().item<double>() / all;
  return average_of(f1_of(counts), average, counts.occurs(), counts.examples());
}

std::vector<double> F1Score::compute_by_class() const {
  const torch::Tensor scores = f1_of(Counts(matrix_.compute()));
  const auto* const begin = static_cast<const double*>(scores.const_data_ptr());
  return {begin, begin + scores.numel()};
}

AUROC::AUROC(const ClassificationOptions& options) : options_(with_classes("AUROC", options)) {
  if (options.average == Average::micro) refuse_metric("AUROC", "average is micro; it is macro or weighted");
}

void AUROC::update(const torch::Tensor& scores, const torch::Tensor& targets) {
  const torch::NoGradGuard no_gradients;
  const std::int64_t classes = options_.num_classes;
  if (!scores.defined() || !targets.defined()) refuse_metric("AUROC", "a tensor is undefined");
  check_targets("AUROC", targets);
  torch::Tensor of_examples = scores.detach().cpu().to(torch::kDouble);
  if (classes == 2 && of_examples.dim() == 1) of_examples = of_examples.unsqueeze(1);
  torch::Tensor own = targets.detach().cpu().to(torch::kLong);
  if (of_examples.dim() != 2 || own.dim() != 1 || of_examples.size(0) != own.size(0) ||
      of_examples.size(1) != (classes == 2 ? 1 : classes)) {
    refuse_metric("AUROC", "scores " + c10::str(scores.sizes()) + " and targets " + c10::str(targets.sizes()) +
                               "; expected are [examples" +
                               (classes == 2 ? std::string("]") : ", " + std::to_string(classes) + "]") +
                               " and [examples]");
  }
  if (options_.ignore_index) {
    const torch::Tensor counts = own.ne(*options_.ignore_index);
    of_examples = of_examples.index({counts});
    own = own.index({counts});
  }
  if (of_examples.isnan().any().item<bool>()) refuse_metric("AUROC", "a score is NaN");
  if ((own < 0).logical_or(own >= classes).any().item<bool>())
    refuse_metric("AUROC", "a target is none of the " + std::to_string(classes) + " classes");
  scores_.push_back(of_examples);
  targets_.push_back(own);
}

double AUROC::compute() const {
  const std::int64_t classes = options_.num_classes;
  const std::int64_t columns = classes == 2 ? 1 : classes;
  const torch::Tensor scores =
      all_rows(scores_.empty() ? torch::zeros({0, columns}, torch::kDouble) : torch::cat(scores_));
  const torch::Tensor targets = all_rows(targets_.empty() ? torch::zeros({0}, torch::kLong) : torch::cat(targets_));
  if (classes == 2) return area(scores.select(1, 0), targets.eq(1));
  double sum = 0;
  double weights = 0;
  for (std::int64_t one = 0; one < classes; ++one) {
    const torch::Tensor is_of_class = targets.eq(one);
    const double value = area(scores.select(1, one), is_of_class);
    if (std::isnan(value)) continue;
    const double weight = options_.average == Average::weighted ? is_of_class.sum().item<double>() : 1;
    sum += weight * value;
    weights += weight;
  }
  return weights > 0 ? sum / weights : kNone;
}

void AUROC::reset() {
  scores_.clear();
  targets_.clear();
}

void Perplexity::update(const torch::Tensor& logits, const torch::Tensor& targets) {
  const torch::NoGradGuard no_gradients;
  if (!logits.defined() || !targets.defined()) refuse_metric("Perplexity", "a tensor is undefined");
  check_targets("Perplexity", targets);
  if (logits.dim() != targets.dim() + 1 ||
      logits.sizes().slice(0, static_cast<std::size_t>(targets.dim())) != targets.sizes()) {
    refuse_metric("Perplexity", "logits " + c10::str(logits.sizes()) + " and targets " + c10::str(targets.sizes()) +
                                    "; expected are [..., words] and [...]");
  }
  torch::Tensor of_words = logits.reshape({-1, logits.size(-1)});
  torch::Tensor words = targets.flatten().to(logits.device(), torch::kLong);
  if (ignore_index_) {
    const torch::Tensor counts = words.ne(*ignore_index_);
    of_words = of_words.index({counts});
    words = words.index({counts});
  }
  const torch::Tensor outside = words.lt(0).logical_or(words.ge(logits.size(-1)));
  // In half precision each likelihood would be rounded.
  const auto type = torch::promote_types(logits.scalar_type(), torch::kFloat);
  const torch::Tensor likelihoods =
      torch::log_softmax(of_words, 1, type).gather(1, words.masked_fill(outside, 0).unsqueeze(1)).squeeze(1);
  accumulate(sums_, torch::stack({-likelihoods.masked_fill(outside, 0).sum(torch::kDouble),
                                  outside.logical_not().sum(torch::kDouble), outside.sum(torch::kDouble)}));
}

double Perplexity::compute() const {
  const torch::Tensor sums = over_ranks(sums_, {3}, torch::kDouble);
  if (const double outside = sums[2].item<double>(); outside > 0) {
    refuse_metric("Perplexity", std::to_string(static_cast<std::int64_t>(outside)) +
                                    " targets are none of the words, which the logits have from 0 on; ignore_index is "
                                    "for targets that do not count");
  }
  const double count = sums[1].item<double>();
  return count > 0 ? std::exp(sums[0].item<double>() / count) : kNone;
}

}  // namespace cadre::train
