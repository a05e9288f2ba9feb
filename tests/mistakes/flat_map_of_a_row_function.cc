// flat_map is given a function that returns one row.
// says: std::vector<Row> f(const Row&)
#include <cadre/data.h>

using namespace cadre;

data::Row halve(const data::Row& row) { return row; }

int main(int argc, char** argv) {
  cadre::init(argc, argv);
  data::read_parquet("trips").flat_map(fn<halve>).show();
}
