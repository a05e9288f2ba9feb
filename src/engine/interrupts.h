// Handling of SIGINT (Ctrl-C), SIGTERM and SIGHUP (the terminal is gone) while an experiment runs: the first one
// requests an orderly end, the second one does what it would do without Cadre, which is to end the program. Signals
// within a quarter of a second of the first one count as the same request: `timeout` signals its child and then its
// process group, shells pass on a SIGHUP that the kernel has already sent, and systemd may send SIGHUP after SIGTERM.
#pragma once

#include <signal.h>

#include <array>
#include <chrono>

#include "engine/engine.h"

namespace cadre::engine {

// Handles these signals for its lifetime, and wakes the engine when one arrives. A signal that the program ignores or
// handles itself stays as it is, and so do all in a worker, where they are not meant for the run that it has started
// (engine/local/outside_signals.h). Only one object can exist at a time.
class Interrupts {
 public:
  explicit Interrupts(engine::Engine& engine);
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  // Does what a first signal does, unless there was one. One that arrives later ends nothing yet.
  void request(int signal);
  // Returns the first signal; 0 if there was none.
  int signal() const;
  // Returns the first signal of the last Interrupts object; 0 if there was none.
  static int last_signal();
  // Sleeps. A signal that arrives ends it early; one that arrived before does not.
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

}  // namespace cadre::engine
