// batch_size is misspelled.
// says: MapBatchesOptions
#include <cadre/data.h>

using namespace cadre;

data::Batch halve(const data::Batch& batch) { return batch; }

int main(int argc, char** argv) {
  cadre::init(argc, argv);
  data::read_parquet("trips").map_batches(fn<halve>, {.batchsize = 3}).show();
}
