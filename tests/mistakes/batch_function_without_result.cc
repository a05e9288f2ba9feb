// The function returns nothing.
// says: Batch f(const Batch&)
#include <cadre/data.h>

using namespace cadre;

void halve(const data::Batch&) {}

int main(int argc, char** argv) {
  cadre::init(argc, argv);
  data::read_parquet("trips").map_batches(fn<halve>).show();
}
