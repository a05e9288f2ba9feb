// Who has which resources. Pure accounting, in units of 1/10000, so that ten times 0.1 is 1.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "cadre/resources.h"

namespace cadre::run {

class ResourceLedger {
 public:
  explicit ResourceLedger(const Resources& total);

  // Takes the amounts if all of them are free.
  bool acquire(const Resources& wanted);
  void release(const Resources& held);

  // Whether the amounts exist at all; if not, the first one that does not, as "2 gpus (there are 0)".
  std::string shortage(const Resources& wanted) const;

  // "1.5/2 CPUs, 0/0 GPUs", with custom resources behind.
  std::string usage() const;

 private:
  using Amounts = std::map<std::string, std::int64_t>;
  static Amounts amounts_of(const Resources& resources);

  Amounts total_;
  Amounts used_;
};

}  // namespace cadre::run
