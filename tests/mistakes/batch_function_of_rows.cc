// The function takes a vector of rows.
// says: const Batch&
#include <cadre/data.h>

using namespace cadre;

data::Batch halve(const std::vector<data::Row>& rows) { return data::to_batch(rows); }

int main(int argc, char** argv) {
  cadre::init(argc, argv);
  data::read_parquet("trips").map_batches(fn<halve>).show();
}
