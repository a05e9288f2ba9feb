// The learner of the program without libtorch: gradient descent on a parabola.
#include <cstdlib>

#include "base/file.h"
#include "base/json.h"
#include "learner.h"

namespace cadre::bench {

bool with_torch() { return false; }

struct Learner::State {
  double lr;
  double weight = 1;
};

Learner::Learner(double lr) : state_(std::make_unique<State>(State{.lr = lr})) {}
Learner::~Learner() = default;

void Learner::train(std::chrono::duration<double> cpu_time) {
  constexpr int steps_of_a_batch = 1000;
  const auto end = thread_cpu_time() + cpu_time;
  do {
    for (int i = 0; i < steps_of_a_batch; ++i) state_->weight -= 1e-9 * state_->lr * state_->weight;
  } while (thread_cpu_time() < end);
}

void Learner::save(const std::filesystem::path& file) const {
  base::replace_file(file, base::to_json({{"weight", state_->weight}}));
}

void Learner::load(const std::filesystem::path& file) {
  state_->weight = Config(base::parse_json(base::read_file(file), file.string()).dict()).get<double>("weight");
}

}  // namespace cadre::bench
