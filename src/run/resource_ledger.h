// Who has which resources. Pure accounting, in units of 1/10000, so that ten times 0.1 is 1.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cadre/resources.h"

namespace cadre::run {

// GPUs by their number, from 0. A share of a GPU is one of them, more than one GPU are whole ones.
using Gpus = std::vector<int>;

// The most that one machine has; of anything but GPUs as much as a ledger can count.
inline constexpr double kMostGpus = 65'536;
inline constexpr double kMostOfAResource = 9e14;

class ResourceLedger {
 public:
  // Throws std::invalid_argument for amounts that no machine has: negative ones, what is no number, and too much.
  explicit ResourceLedger(const Resources& total);

  // Takes the amounts if all of them are free and the machine is as it is wanted, and says on which GPUs: a share goes
  // where it leaves the least free. With `only`, those GPUs and no others.
  std::optional<Gpus> acquire(const Resources& wanted, const std::optional<Gpus>& only = {});
  // Whether acquire() would succeed.
  bool is_free(const Resources& wanted, const std::optional<Gpus>& only = {}) const;
  void release(const Resources& held, const Gpus& gpus);

  // Whether the amounts exist at all, and the machine is as it is wanted; if not, the first thing that is missing, as
  // "2 gpus (there are 0)".
  std::string shortage(const Resources& wanted) const;

  // "1.5/2 CPUs, 0/0 GPUs", with custom resources behind.
  std::string usage() const;

 private:
  using Amounts = std::map<std::string, std::int64_t>;
  static Amounts amounts_of(const Resources& resources);

  // Where so many units of GPUs fit; empty: nowhere.
  std::optional<Gpus> place(std::int64_t units, const std::optional<Gpus>& only) const;

  Resources machine_;
  Amounts total_;  // GPUs have their own place
  Amounts used_;
  std::vector<std::int64_t> free_gpus_;  // of each, in units
  std::int64_t total_gpus_;
};

}  // namespace cadre::run
