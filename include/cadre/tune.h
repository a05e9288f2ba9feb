/// \file
/// Hyper-parameter tuning: everything of cadre::tune. docs/tutorials begins with a program of thirty lines.
///
/// Threads: cadre::init and a Tuner belong to the main thread, and what a training function calls
/// (cadre/tune/session.h) to the function's own. Everything else may be used in any thread, each object in one at a
/// time; objects that nobody changes may be read in many.
///
/// Metrics and hyper-parameters inside nested dictionaries are named by their path: "eval/accuracy".
#pragma once

/// Cadre: what all its parts share.
namespace cadre {
/// Hyper-parameter tuning.
namespace tune {}
}  // namespace cadre

#include "cadre/checkpoint.h"
#include "cadre/error.h"
#include "cadre/init.h"
#include "cadre/object.h"
#include "cadre/resources.h"
#include "cadre/tune/class_trainable.h"
#include "cadre/tune/plot.h"
#include "cadre/tune/result.h"
#include "cadre/tune/schedulers.h"
#include "cadre/tune/search_space.h"
#include "cadre/tune/session.h"
#include "cadre/tune/stop.h"
#include "cadre/tune/trainable.h"
#include "cadre/tune/tuner.h"
#include "cadre/value.h"
