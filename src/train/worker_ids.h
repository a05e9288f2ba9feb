// The engine's ids of a run's workers. The id of a rank contains the attempt of its group; the id of a validator
// contains the checkpoint and the attempt of the validation.
#pragma once

#include <cstdint>

#include "checkpoint/checkpoint_registry.h"
#include "engine/engine.h"
#include "train/checkpoint_part.h"

namespace cadre::train {

inline engine::WorkerId worker_id(Rank rank, std::int64_t attempt) {
  return static_cast<std::uint64_t>(attempt) << 32 | static_cast<std::uint32_t>(rank);
}
inline Rank rank_of(engine::WorkerId worker) { return static_cast<Rank>(worker & 0xffffffffu); }
inline std::int64_t attempt_of(engine::WorkerId worker) { return static_cast<std::int64_t>(worker >> 32); }

// The bit that is set in the ids of validators only.
inline constexpr engine::WorkerId kIsValidator = engine::WorkerId{1} << 63;
inline engine::WorkerId validator_id(checkpoint::CheckpointId checkpoint, std::int64_t attempt) {
  return kIsValidator | static_cast<std::uint64_t>(checkpoint) << 20 | static_cast<std::uint64_t>(attempt);
}
inline bool is_validator(engine::WorkerId worker) { return (worker & kIsValidator) != 0; }
inline checkpoint::CheckpointId checkpoint_of(engine::WorkerId worker) {
  return static_cast<checkpoint::CheckpointId>((worker & ~kIsValidator) >> 20);
}
inline std::int64_t validator_attempt_of(engine::WorkerId worker) {
  return static_cast<std::int64_t>(worker & 0xfffff);
}

}  // namespace cadre::train
