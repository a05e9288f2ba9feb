// A member of a struct inside the struct is of a type that no config has.
// says: begin
#include <chrono>

#include <cadre/tune.h>

using namespace cadre;

struct Schedule {
  std::int64_t steps = 10;
  std::chrono::seconds begin = {};
};
struct Hyperparameters {
  double lr = 0.1;
  Schedule schedule;
};
void train_model(const Config& config) { tune::report({{"loss", config.get<double>("lr")}}); }

int main(int argc, char** argv) {
  cadre::init(argc, argv);
  tune::Tuner tuner(fn<train_model>, {.param_space = to_config(Hyperparameters())});
  tuner.fit();
}
