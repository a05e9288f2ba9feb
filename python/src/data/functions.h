// The functions of Python that datasets call.
#pragma once

namespace cadre::python {

// Lets datasets of this process call functions of Python, and Ctrl-C end their executions.
void serve_functions();

}  // namespace cadre::python
