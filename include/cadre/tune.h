// Hyper-parameter tuning: everything of cadre::tune.
#pragma once

#include "cadre/checkpoint.h"
#include "cadre/error.h"
#include "cadre/init.h"
#include "cadre/resources.h"
#include "cadre/tune/plot.h"
#include "cadre/tune/result.h"
#include "cadre/tune/schedulers.h"
#include "cadre/tune/search_space.h"
#include "cadre/tune/session.h"
#include "cadre/tune/trainable.h"
#include "cadre/tune/tuner.h"
#include "cadre/value.h"
