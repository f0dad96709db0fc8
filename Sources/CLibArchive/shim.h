#pragma once
#include <archive.h>
#include <archive_entry.h>

// AE_IFREG and its like are macros with a cast, which Swift cannot import.
enum {
  drydock_type_file = 0100000,
  drydock_type_directory = 0040000,
  drydock_type_link = 0120000,
};
