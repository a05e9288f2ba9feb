// SIGINT (Ctrl-C), SIGTERM and SIGHUP (the terminal is gone) while an experiment runs: the first one asks for an
// orderly end, the second one does what it would do without Cadre, which is to end the program. Those that come within
// a quarter of a second of the first one belong to it: `timeout` signals its child and then its process group, shells
// pass SIGHUP on that the kernel has sent already, and systemd may send SIGHUP behind SIGTERM.
#pragma once

#include <signal.h>

#include <array>
#include <chrono>

#include "engine/engine.h"

namespace cadre::run {

// Takes these signals over for its lifetime, and wakes the engine when one comes. A signal that the program ignores or
// handles itself stays as it is, and so do all in a worker, where they are not meant for the run that it has begun
// (engine/local/outside_signals.h). One at a time.
class Interrupts {
 public:
  explicit Interrupts(engine::Engine& engine);
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  // The signal that came first; 0: none did.
  int signal() const;
  // The same of the one that was there last.
  static int last_signal();
  // Waits; a signal that comes ends it early, one that has come already does not.
  static void sleep(std::chrono::nanoseconds time);

 private:
  struct Taken {
    int number = 0;
    struct sigaction before = {};
    bool taken = false;
  };
  static void on_signal(int number);
  void give_back() noexcept;

  std::array<Taken, 3> signals_ = {Taken{SIGINT}, Taken{SIGTERM}, Taken{SIGHUP}};
};

}  // namespace cadre::run
