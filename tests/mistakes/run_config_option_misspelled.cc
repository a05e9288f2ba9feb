// storage_path is misspelled.
// says: storage
#include <cadre/tune.h>

using namespace cadre;

int main(int argc, char** argv) {
  cadre::init(argc, argv);
  tune::RunConfig run{.name = "a", .storage = "/tmp"};
  static_cast<void>(run);
}
