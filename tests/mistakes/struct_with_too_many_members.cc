// The struct has more members than Cadre can name.
// says: 1 to 24 of them
#include <cadre/tune.h>

using namespace cadre;

struct Hyperparameters {
  double a = 1, b = 1, c = 1, d = 1, e = 1, f = 1, g = 1, h = 1, i = 1, j = 1, k = 1, l = 1, m = 1;
  double n = 1, o = 1, p = 1, q = 1, r = 1, s = 1, t = 1, u = 1, v = 1, w = 1, x = 1, y = 1;
};
void train_model(const Hyperparameters& config) { tune::report({{"loss", config.a}}); }

int main(int argc, char** argv) {
  cadre::init(argc, argv);
  tune::Tuner tuner(fn<train_model>, {});
  tuner.fit();
}
