// map is given a function of batches.
// says: Row f(const Row&)
#include <cadre/data.h>

using namespace cadre;

data::Batch halve(const data::Batch& batch) { return batch; }

int main(int argc, char** argv) {
  cadre::init(argc, argv);
  data::read_parquet("trips").map(fn<halve>).show();
}
