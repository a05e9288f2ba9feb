/// \file
/// Hyper-parameter tuning: all headers of cadre::tune. docs/tutorials begins with a program of thirty lines.
///
/// Threads: cadre::init and a Tuner belong to the main thread; the functions that a training function calls
/// (cadre/tune/session.h) belong to its own thread. All other objects may be used in any thread, each in one at a time;
/// several threads may read an object that no thread changes.
///
/// Metrics and hyper-parameters inside nested dictionaries are named by their path: "eval/accuracy".
#pragma once

/// Cadre: the parts that tuning, training and datasets share.
namespace cadre {
/// Hyper-parameter tuning.
namespace tune {}
}  // namespace cadre

#include "cadre/checkpoint.h"
#include "cadre/error.h"
#include "cadre/init.h"
#include "cadre/object.h"
#include "cadre/resources.h"
#include "cadre/tune/callback.h"
#include "cadre/tune/class_trainable.h"
#include "cadre/tune/importance.h"
#include "cadre/tune/plot.h"
#include "cadre/tune/program.h"
#include "cadre/tune/result.h"
#include "cadre/tune/schedulers.h"
#include "cadre/tune/search_space.h"
#include "cadre/tune/session.h"
#include "cadre/tune/stop.h"
#include "cadre/tune/study.h"
#include "cadre/tune/trainable.h"
#include "cadre/tune/tuner.h"
#include "cadre/value.h"
