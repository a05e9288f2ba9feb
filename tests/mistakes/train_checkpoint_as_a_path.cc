// A checkpoint is given by its path.
// says: Checkpoint::from_directory
#include <cadre/train.h>

using namespace cadre;

void train_net(const Config&) {
  const std::filesystem::path directory = "saved";
  train::report({{"loss", 1}}, directory);
}

int main(int argc, char** argv) {
  cadre::init(argc, argv);
  train::Trainer trainer(fn<train_net>, {});
  trainer.fit();
}
