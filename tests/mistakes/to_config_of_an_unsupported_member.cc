// A member of a struct is of a type that no config has.
// says: begin
#include <chrono>

#include <cadre/train.h>

using namespace cadre;

struct Settings {
  double lr = 0.1;
  std::chrono::seconds begin = {};
};
void train_model(const Config& config) { train::report({{"loss", config.get<double>("lr")}}); }

int main(int argc, char** argv) {
  cadre::init(argc, argv);
  const Config config = to_config(Settings());
  train::Trainer(fn<train_model>, {.train_loop_config = config}).fit();
}
