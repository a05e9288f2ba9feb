// The Trainer is given a trainable class.
// says: fn<f>
#include <cadre/train.h>
#include <cadre/tune.h>

using namespace cadre;

struct Training : tune::ClassTrainable {
  Metrics step() override { return {{"loss", 1}}; }
};

int main(int argc, char** argv) {
  cadre::init(argc, argv);
  train::Trainer trainer(tune::trainable<Training>(), {.scaling_config = {.num_workers = 2}});
  trainer.fit();
}
