// map_batches is given the function itself.
// says: fn<f>
#include <cadre/data.h>

using namespace cadre;

data::Batch halve(const data::Batch& batch) { return batch; }

int main(int argc, char** argv) {
  cadre::init(argc, argv);
  data::read_parquet("trips").map_batches(halve).show();
}
