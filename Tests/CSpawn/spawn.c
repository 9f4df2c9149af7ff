#define _GNU_SOURCE
#include "CSpawn.h"

int apnscope_add_folder_and_close(posix_spawn_file_actions_t *actions, const char *folder) {
  int error = folder ? posix_spawn_file_actions_addchdir_np(actions, folder) : 0;
  return error ? error : posix_spawn_file_actions_addclosefrom_np(actions, 3);
}
