// Checks of a host while a thread waits for rows: of signals that its interpreter has noted.
#pragma once

#include <condition_variable>
#include <mutex>

namespace cadre::data {

// Calls the function of set_interrupt_check(), if there is one. It may throw.
void check_interrupts();
// Does the same, but not more often in a thread than every tenth of a second.
void check_interrupts_at_times();

// Waits for a change, which may have happened when it returns, and checks if that takes long.
void wait_with_checks(std::condition_variable& changed, std::unique_lock<std::mutex>& lock);

}  // namespace cadre::data
