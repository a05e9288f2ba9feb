/// \file
/// Mix-up: batches whose rows are mixed in pairs, with their labels.
#pragma once

#include <cstdint>
#include <string>

#include "cadre/data/batch.h"

namespace cadre::data {

/// Options of mix_up.
struct MixUpOptions {
  double alpha = 1;                ///< of the beta distribution of the parts, above 0
  std::int64_t num_classes = 0;    ///< labels are from 0 to this, exclusive; above 0
  std::uint64_t seed = 0;          ///< of the part
  std::uint64_t epoch = 0;         ///< see ImageTransformsOptions
  std::string row_column = "row";  ///< the part depends on the number of the batch's first row
};
/// Returns the batch with each row mixed with the row before it, the first with the last, in one random part: the
/// column of float tensors, and that of whole-number labels, which becomes one of float tensors of `num_classes`
/// values. Throws InvalidArgument for other columns, labels and options. Source: "mixup: Beyond Empirical Risk
/// Minimization", Zhang et al.
Batch mix_up(const Batch& batch, const std::string& image_column, const std::string& label_column,
             const MixUpOptions& options);

}  // namespace cadre::data
