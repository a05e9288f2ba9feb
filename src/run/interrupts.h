// Ctrl-C and SIGTERM while an experiment runs: the first one asks for an orderly end, the second one does what it would
// do without Cadre, which is to end the program.
#pragma once

#include <signal.h>

#include <array>
#include <chrono>

#include "engine/engine.h"

namespace cadre::run {

// Takes SIGINT and SIGTERM over for its lifetime, and wakes the engine when one comes. A signal that the program
// ignores or handles itself stays as it is. One at a time.
class Interrupts {
 public:
  explicit Interrupts(engine::Engine& engine);
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  // The signal that came; 0: none did.
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

  std::array<Taken, 2> signals_ = {Taken{SIGINT}, Taken{SIGTERM}};
};

}  // namespace cadre::run
