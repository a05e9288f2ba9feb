#include "survival/training_setting.h"

#include <stdexcept>

namespace cadre::survival {

std::string TrainingSetting::text() const {
  return std::string("validator ") + kForms.at(static_cast<std::size_t>(form)) + ", workers " +
         std::to_string(workers) + ", steps " + std::to_string(steps) + ", checkpoint_interval " +
         std::to_string(checkpoint_interval) + ", num_to_keep " + std::to_string(num_to_keep);
}

std::string file_of_rank(std::int64_t rank) { return "rank_" + std::to_string(rank); }

std::vector<std::string> to_arguments(const TrainingOrder& order) {
  const TrainingSetting& setting = order.setting;
  std::vector<std::string> arguments{order.run, order.rows.string()};
  for (const std::int64_t number : {static_cast<std::int64_t>(setting.form), setting.workers, setting.steps,
                                    setting.checkpoint_interval, setting.num_to_keep})
    arguments.push_back(std::to_string(number));
  return arguments;
}

TrainingOrder from_arguments(const std::vector<std::string>& arguments) {
  if (arguments.size() != 7)
    throw std::runtime_error("only cadre_soak starts this program: it trains what that disturbs");
  const auto number = [&](std::size_t index) { return std::stoll(arguments.at(index)); };
  return {.run = arguments[0],
          .rows = arguments[1],
          .setting = {.form = static_cast<Form>(number(2)),
                      .workers = number(3),
                      .steps = number(4),
                      .checkpoint_interval = number(5),
                      .num_to_keep = number(6)}};
}

}  // namespace cadre::survival
