/// \file
/// Cadre's schedulers; a program's own implement the interface in cadre/tune/scheduler.h.
#pragma once

#include "cadre/tune/schedulers/asha.h"
#include "cadre/tune/schedulers/fifo.h"
#include "cadre/tune/schedulers/host_scheduler.h"
#include "cadre/tune/schedulers/hyperband.h"
#include "cadre/tune/schedulers/median_stopping_rule.h"
#include "cadre/tune/schedulers/multiple_frequencies_pbt.h"
#include "cadre/tune/schedulers/pb2.h"
#include "cadre/tune/schedulers/population_based_training.h"
#include "cadre/tune/schedulers/population_based_training_replay.h"
#include "cadre/tune/schedulers/resource_changing_scheduler.h"
