#include "data/shuffle.h"

#include <arrow/array.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>

#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "data/arrow_status.h"

namespace cadre::data {
namespace {

// No text of UTF-8, and so no name of a column of anybody's.
constexpr const char* kNumberColumn = "\xff random number";

// Blocks with a column more, at their end: a random number for each row.
class WithRandomNumbers final : public BlockStream {
 public:
  WithRandomNumbers(std::unique_ptr<BlockStream> input, std::uint64_t seed) : input_(std::move(input)), seed_(seed) {}

  std::optional<Block> next() override {
    const auto block = input_->next();
    if (!block) return std::nullopt;
    std::vector<std::uint64_t> numbers;
    numbers.reserve(static_cast<std::size_t>((*block)->num_rows()));
    for (std::int64_t i = 0; i < (*block)->num_rows(); ++i)
      numbers.push_back(base::RandomStream(seed_, 0, base::Purpose::dataset_shuffle, row_++).bits());
    const auto column =
        std::make_shared<arrow::UInt64Array>((*block)->num_rows(), arrow::Buffer::FromVector(std::move(numbers)));
    return checked((*block)->AddColumn((*block)->num_columns(), kNumberColumn, column), "cannot shuffle rows");
  }
  void cancel() override { input_->cancel(); }

 private:
  std::unique_ptr<BlockStream> input_;
  std::uint64_t seed_;
  std::uint64_t row_ = 0;
};

}  // namespace

Shuffled::Shuffled(std::unique_ptr<BlockStream> input, const Options& options,
                   std::shared_ptr<OperatorProgress> progress)
    : sorted_(std::make_unique<WithRandomNumbers>(std::move(input), options.seed),
              {.keys = {kNumberColumn},
               .limit_bytes = options.limit_bytes,
               .block_bytes = options.block_bytes,
               .pool = options.pool},
              std::move(progress)) {}

std::optional<Block> Shuffled::next() {
  const auto block = sorted_.next();
  if (!block) return std::nullopt;
  const Block shuffled = checked((*block)->RemoveColumn((*block)->num_columns() - 1), "cannot shuffle rows");
  // Without columns the number of rows is not known otherwise.
  return arrow::RecordBatch::Make(shuffled->schema(), (*block)->num_rows(), shuffled->columns());
}

}  // namespace cadre::data
