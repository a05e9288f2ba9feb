// The Trainer is given a lambda.
// says: lambda
// says: fn<f>
#include <cadre/train.h>

using namespace cadre;

int main(int argc, char** argv) {
  cadre::init(argc, argv);
  train::Trainer trainer([](const Config&) {}, {.scaling_config = {.num_workers = 2}});
  trainer.fit();
}
