// map_batches is given a function of rows.
// says: Batch f(const Batch&)
#include <cadre/data.h>

using namespace cadre;

data::Row halve(const data::Row& row) { return row; }

int main(int argc, char** argv) {
  cadre::init(argc, argv);
  data::read_parquet("trips").map_batches(fn<halve>).show();
}
