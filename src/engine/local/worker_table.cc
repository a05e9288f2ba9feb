#include "engine/local/worker_table.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/system_error.h"
#include "cadre/error.h"

namespace cadre::engine::local {

WorkerTable::WorkerTable() : memory_(::memfd_create("cadre-workers", MFD_CLOEXEC)) {
  if (!memory_ || ::ftruncate(memory_.get(), sizeof(Slot) * max_workers) != 0) {
    throw EngineError("cannot make the memory that workers share: " + base::last_system_error());
  }
  map();
}

WorkerTable::WorkerTable(base::FileDescriptor memory) : memory_(std::move(memory)) { map(); }

WorkerTable::~WorkerTable() { ::munmap(slots_, sizeof(Slot) * max_workers); }

void WorkerTable::map() {
  void* const memory =
      ::mmap(nullptr, sizeof(Slot) * max_workers, PROT_READ | PROT_WRITE, MAP_SHARED, memory_.get(), 0);
  if (memory == MAP_FAILED) throw EngineError("cannot map the memory that workers share: " + base::last_system_error());
  slots_ = static_cast<Slot*>(memory);
}

std::optional<std::size_t> WorkerTable::take_slot() {
  if (free_.empty() && used_ == max_workers) return std::nullopt;
  if (free_.empty()) return used_++;
  const std::size_t slot = free_.back();
  free_.pop_back();
  return slot;
}

void WorkerTable::set_process(std::size_t slot, pid_t process) { slots_[slot].process.store(process); }

std::string WorkerTable::setup_failure(std::size_t slot) const {
  const char* const text = slots_[slot].setup_failure;
  return {text, ::strnlen(text, sizeof slots_[slot].setup_failure)};
}

void WorkerTable::free_slot(std::size_t slot) {
  slots_[slot].process.store(0);
  slots_[slot].signal.store(0);
  slots_[slot].setup_failure[0] = 0;
  free_.push_back(slot);
}

void WorkerTable::set_setup_failure(std::size_t slot, const std::string& reason) {
  char* const text = slots_[slot].setup_failure;
  text[reason.copy(text, sizeof slots_[slot].setup_failure - 1)] = 0;
}

void WorkerTable::set_signal(std::size_t slot, int signal) noexcept { slots_[slot].signal.store(signal); }

int WorkerTable::take_signal(std::size_t slot) { return slots_[slot].signal.exchange(0); }

std::vector<pid_t> WorkerTable::processes() const {
  std::vector<pid_t> found;
  std::for_each_n(slots_, max_workers, [&](const Slot& slot) {
    if (const pid_t process = slot.process.load(); process > 0) found.push_back(process);
  });
  return found;
}

}  // namespace cadre::engine::local
