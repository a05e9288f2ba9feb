// Returns the message of the error that a call throws.
#pragma once

#include <string>

namespace cadre::test_support {

template <class Error, class Act>
std::string message_of(Act act) {
  try {
    act();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

}  // namespace cadre::test_support
