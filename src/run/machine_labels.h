// Which machines will do: what is asked of a machine's labels and of the kind of its GPUs. Pure.
#pragma once

#include <string>

#include "cadre/resources.h"

namespace cadre::run {

// What is wrong with the labels that a machine has, or with what is asked of them; empty when nothing is.
std::string fault_of_labels(const Resources& machine);
std::string fault_of_selectors(const Resources& wanted);

// Why a machine will not do, as "label zone=eu (it is us)"; empty when it will.
std::string mismatch(const Resources& machine, const Resources& wanted);

// Adds what is asked for to what is asked for already. Says what contradicts it; empty when nothing does.
std::string add_selectors(Resources& wanted, const Resources& more);

}  // namespace cadre::run
