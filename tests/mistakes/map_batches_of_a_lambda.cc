// map_batches is given a lambda.
// says: lambda
// says: fn<f>
#include <cadre/data.h>

using namespace cadre;

int main(int argc, char** argv) {
  cadre::init(argc, argv);
  data::read_parquet("trips").map_batches([](const data::Batch& batch) { return batch; }).show();
}
