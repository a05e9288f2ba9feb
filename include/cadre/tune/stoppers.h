/// \file
/// Cadre's stoppers; a program's own implement the interface in cadre/tune/stopper.h.
#pragma once

#include "cadre/tune/stoppers/experiment_plateau_stopper.h"
#include "cadre/tune/stoppers/function_stopper.h"
#include "cadre/tune/stoppers/maximum_iteration_stopper.h"
#include "cadre/tune/stoppers/regret_bound_terminator.h"
#include "cadre/tune/stoppers/timeout_stopper.h"
#include "cadre/tune/stoppers/trial_plateau_stopper.h"
