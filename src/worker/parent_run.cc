#include "worker/parent_run.h"

namespace cadre::worker {
namespace {

ParentRun* current_parent = nullptr;

}  // namespace

ParentRun::ParentRun() { current_parent = this; }

ParentRun::~ParentRun() { current_parent = nullptr; }

ParentRun* ParentRun::current() { return current_parent; }

}  // namespace cadre::worker
