// What the result files show of a trial.
#pragma once

#include "cadre/value.h"
#include "run/loggers/tensorboard_events.h"
#include "tune/events.h"
#include "tune/trial.h"

namespace cadre::tune {

// Of a result: what was reported, and what was made of it.
Dict row_of(const LogResult& result);

// Of a trial that has ended, and was seen last at `time`: what it was run with and how it came out, as a session of
// TensorBoard's HPARAMS tab (see run::TensorBoardFile::end), and its last row.
run::tensorboard::Session session_of(const Trial& trial, double time);
Dict last_row_of(const Trial& trial);

}  // namespace cadre::tune
