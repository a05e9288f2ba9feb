// cadre/torch.h is not included.
// says: save_state
#include <cadre/tune.h>

using namespace cadre;

struct Net {};
void train_model(const Config&) {
  Net model;
  tune::report({{"loss", 1}},
               [&](const std::filesystem::path& directory) { save_state(directory / "model.pt", model); });
}

int main(int argc, char** argv) {
  cadre::init(argc, argv);
  tune::Tuner tuner(fn<train_model>, {});
  tuner.fit();
}
