/// \file
/// Cadre's searchers; a program's own implement the interface in cadre/tune/searcher.h.
#pragma once

#include "cadre/tune/searchers/bohb.h"
#include "cadre/tune/searchers/cmaes.h"
#include "cadre/tune/searchers/concurrency_limiter.h"
#include "cadre/tune/searchers/external_searcher.h"
#include "cadre/tune/searchers/gaussian_process.h"
#include "cadre/tune/searchers/host_searcher.h"
#include "cadre/tune/searchers/nsga2.h"
#include "cadre/tune/searchers/quasi_random.h"
#include "cadre/tune/searchers/random_search.h"
#include "cadre/tune/searchers/repeater.h"
#include "cadre/tune/searchers/tpe.h"
#include "cadre/tune/searchers/warm_start.h"
