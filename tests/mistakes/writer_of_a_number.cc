// The writer takes a number.
// says: const std::filesystem::path&
#include <cadre/tune.h>

using namespace cadre;

void train_model(const Config&) {
  tune::report({{"loss", 1}}, [](int step) { static_cast<void>(step); });
}

int main(int argc, char** argv) {
  cadre::init(argc, argv);
  tune::Tuner tuner(fn<train_model>, {});
  tuner.fit();
}
