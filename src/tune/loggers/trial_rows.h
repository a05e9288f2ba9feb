// The rows of a trial in its result files.
#pragma once

#include "cadre/value.h"
#include "loggers/tensorboard_events.h"
#include "tune/events.h"
#include "tune/trial.h"

namespace cadre::tune {

// Returns the row of a result: the reported metrics, and the keys that the controller adds.
Dict row_of(const LogResult& result);

// Return the config and the outcome of a trial that ended at `time` as a session of TensorBoard's HPARAMS tab (see
// loggers::TensorBoardFile::end), and its last row.
loggers::tensorboard::Session session_of(const Trial& trial, const LogEnd& end, double time);
Dict last_row_of(const LogEnd& end);

}  // namespace cadre::tune
