// SIGINT while the core runs.
#pragma once

#include <Python.h>
#include <signal.h>

namespace cadre::python {

// Lets Ctrl-C end what runs, and not only set the interpreter's mark that nobody looks at, while it lives. The
// interpreter's handler comes back afterwards. Does nothing unless it is wanted: where the program has a handler of its
// own. The GIL must be held at both ends.
class InterruptibleBySignals {
 public:
  explicit InterruptibleBySignals(bool is_wanted) : is_wanted_(is_wanted) {
    if (is_wanted_) before_ = PyOS_setsig(SIGINT, SIG_DFL);
  }
  ~InterruptibleBySignals() {
    if (is_wanted_) PyOS_setsig(SIGINT, before_);
  }
  InterruptibleBySignals(const InterruptibleBySignals&) = delete;
  InterruptibleBySignals& operator=(const InterruptibleBySignals&) = delete;

 private:
  bool is_wanted_;
  PyOS_sighandler_t before_ = nullptr;
};

}  // namespace cadre::python
