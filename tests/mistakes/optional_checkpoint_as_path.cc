// get_checkpoint returns an optional.
// says: path
#include <cadre/tune.h>

using namespace cadre;

void train_model(const Config&) {
  const auto file = tune::get_checkpoint().path() / "model.pt";
  tune::report({{"size", file.string().size()}});
}

int main(int argc, char** argv) {
  cadre::init(argc, argv);
  tune::Tuner tuner(fn<train_model>, {});
  tuner.fit();
}
