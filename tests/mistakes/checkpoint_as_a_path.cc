// A checkpoint is given by its path.
// says: Checkpoint::from_directory
#include <cadre/tune.h>

using namespace cadre;

void train_model(const Config&) {
  const std::filesystem::path directory = "saved";
  tune::report({{"loss", 1}}, directory);
}

int main(int argc, char** argv) {
  cadre::init(argc, argv);
  tune::Tuner tuner(fn<train_model>, {});
  tuner.fit();
}
