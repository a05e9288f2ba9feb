// Google's Application Default Credentials: https://google.aip.dev/auth/4110
#pragma once

#include "object_storage/access_token.h"

namespace cadre::storage {

// Looks at the file that GOOGLE_APPLICATION_CREDENTIALS names, then at that of the program gcloud, then asks the
// machine itself, on Google's. Knows service accounts and users. Throws StorageFault for other kinds, and where there
// are none.
AccessToken google_access_token();

}  // namespace cadre::storage
