// The class has no operator() of a batch.
// says: operator()
#include <cadre/data.h>

using namespace cadre;

struct Predictor {
  data::Batch predict(const data::Batch& batch) { return batch; }
};

int main(int argc, char** argv) {
  cadre::init(argc, argv);
  data::read_parquet("trips").map_batches(data::actor<Predictor>()).show();
}
