#include <cadre/data.h>

using namespace cadre;

class Predictor {
 public:
  explicit Predictor(const Config& config);
  data::Batch operator()(const data::Batch& images) const;
};

void predict() {
  // SNIPPET
}
