// flat_map is given a lambda.
// says: lambda
// says: fn<f>
#include <cadre/data.h>

using namespace cadre;

int main(int argc, char** argv) {
  cadre::init(argc, argv);
  data::read_parquet("trips").flat_map([](const data::Row& row) { return std::vector<data::Row>{row, row}; }).show();
}
