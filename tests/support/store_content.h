// Everything that can be read from an experiment store, as text to compare.
#pragma once

#include <fmt/format.h>

#include <string>

#include "store/experiment_store.h"

namespace cadre::test_support {

inline std::string content_of_store(const store::ExperimentStore& store) {
  const store::ExperimentInfo info = store.info();
  std::string text = fmt::format("{} {} {}\n", info.name, info.trainable, info.options);
  store.visit({.result =
                   [&](const store::ResultRow& row) {
                     text += fmt::format("result {} {} {} {} {} {} {} {}\n", row.sequence, row.time, row.trial,
                                         row.attempt, row.step, row.repeated, row.metrics, row.checkpoint);
                   },
               .event =
                   [&](const store::EventRow& row) {
                     text += fmt::format("event {} {} {} {} {} {}\n", row.sequence, row.time, row.kind, row.trial,
                                         row.attempt, row.data);
                   },
               .decision =
                   [&](const store::DecisionRow& row) {
                     text += fmt::format("decision {} {} {} {}\n", row.cause, row.kind, row.trial, row.data);
                   }});
  for (const store::TrialRow& row : store.trials())
    text += fmt::format("trial {} {} {} {} {} {} {} {}\n", row.trial, row.trial_id, row.status, row.attempt, row.config,
                        row.tag, row.directory, row.error);
  for (const store::CheckpointRow& row : store.checkpoints())
    text += fmt::format("checkpoint {} {} {} {} {} {} {}\n", row.id, row.trial, row.step, row.directory, row.boot,
                        row.synced, row.manifest);
  if (const auto snapshot = store.last_snapshot())
    text += fmt::format("snapshot {} {}\n", snapshot->sequence, snapshot->state);
  return text;
}

}  // namespace cadre::test_support
