// Accounting of resources in use. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cadre/resources.h"
#include "resources/amounts.h"

namespace cadre::resources {

// Numbers of GPUs, from 0. A share of a GPU is on one GPU; more than one GPU are whole ones.
using Gpus = std::vector<int>;

// Upper limits of one machine's resources; for all but GPUs the most that a ledger can count.
inline constexpr double kMostGpus = 65'536;
inline constexpr double kMostOfAResource = 9e14;

// Returns "1.5/2 CPUs, 0/0 GPUs", followed by custom resources. Both need amounts of CPUs and GPUs.
std::string usage_text(const Amounts& used, const Amounts& total);

class ResourceLedger {
 public:
  // Throws std::invalid_argument for amounts that no machine has: negative ones, NaN, and amounts above the limits.
  explicit ResourceLedger(const Resources& total);

  // Acquires the amounts if all are free and the machine matches the request, and returns their GPUs, which are of
  // the wanted kind: a share is placed where it leaves the least free. `only`: use no other GPUs than these. Empty if
  // it is not possible.
  std::optional<Gpus> acquire(const Resources& wanted, const std::optional<Gpus>& only = {});
  // Returns true if acquire() would succeed.
  bool is_free(const Resources& wanted, const std::optional<Gpus>& only = {}) const;
  // Counts amounts that are in use already, whether they were free or not: the machine may have become smaller.
  void occupy(const Resources& held, const Gpus& gpus);
  void release(const Resources& held, const Gpus& gpus);

  // Returns all that the machine does not have even when all is free, as "8 cpus (there are 4), 2 gpus (there are 0)";
  // empty if it has all. `there`: instead of "there are".
  std::string shortage(const Resources& wanted, std::string_view there = "there are") const;

  // Return the amounts in use, those that are free, and all that there are, with GPUs.
  Amounts used() const;
  Amounts free() const;
  Amounts total() const;
  const std::vector<std::int64_t>& free_gpus() const { return free_gpus_; }  // free units of each
  // Returns usage_text() of them.
  std::string usage() const { return usage_text(used(), total()); }

  bool operator==(const ResourceLedger&) const = default;

 private:
  // Returns GPUs of the wanted kind with room for what is wanted; empty if there are none.
  std::optional<Gpus> place(const Resources& wanted, const std::optional<Gpus>& only) const;
  bool is_wanted(const Resources& wanted, int gpu) const;

  Resources machine_;
  Amounts total_;  // without GPUs, which are in the members below
  Amounts used_;
  std::vector<std::string> gpu_kinds_;
  std::vector<std::int64_t> free_gpus_;  // free units of each GPU
  std::int64_t total_gpus_;
};

}  // namespace cadre::resources
