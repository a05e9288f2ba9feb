// JSON that can stand within a <script> element of a page.
#pragma once

#include <string>

#include "cadre/value.h"

namespace cadre::report {

// Returns compact JSON in ASCII: without blanks, and without the characters "<", ">" and "&", which are written as
// \u003c and so on, so that no text can end the element. Bytes that are not UTF-8 become U+FFFD. Doubles have the
// shortest form that reads back as the same bits; NaN and infinities are null. A reference is null too.
std::string to_script_json(const Value& value);

}  // namespace cadre::report
