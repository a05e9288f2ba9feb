// The function for filter returns the row.
// says: bool f(const Row&)
#include <cadre/data.h>

using namespace cadre;

data::Row same(const data::Row& row) { return row; }

int main(int argc, char** argv) {
  cadre::init(argc, argv);
  data::read_parquet("trips").filter(fn<same>).show();
}
