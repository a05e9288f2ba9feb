// Google's Application Default Credentials: https://google.aip.dev/auth/4110
#pragma once

#include "object_storage/access_token.h"

namespace cadre::storage {

// Gets a token from the file that GOOGLE_APPLICATION_CREDENTIALS names, else from the credentials file of the program
// gcloud, else from the metadata server of a Google machine. Supports service accounts and users. Throws StorageFault
// for other kinds, and if there are no credentials.
AccessToken google_access_token();

}  // namespace cadre::storage
