/* runtime/trainer/checkpoint_folder.h -- the checkpoints of one folder, named
 * step-NNNNNNNNN.safetensors after their update. */
#ifndef LS_RUNTIME_TRAINER_CHECKPOINT_FOLDER_H
#define LS_RUNTIME_TRAINER_CHECKPOINT_FOLDER_H

#include "runtime/trainer/checkpoint.h"

enum { LS_KEEP = 1024 };
typedef struct LsSaver {
    const char *folder;         /* NULL: nothing is saved */
    int64_t keep;               /* 0: all */
    int64_t update[LS_KEEP];    /* of the files that are there, rising */
    int count;
    char path[LS_PATH];         /* of the last one saved or loaded */
} LsSaver;

/* Makes the folder when needed and looks what is in it. */
bool ls_saver_open(LsSaver *s, const char *folder, int64_t keep, LsError *e);
bool ls_saver_save(LsSaver *s, const LsMemory *m, const LsPlace *at, LsError *e);
/* Loads the newest file that is sound; *found = false when there is none. A damaged one is told on
 * stderr and passed over; when all are damaged, that is the error. */
bool ls_saver_load(LsSaver *s, const LsMemory *m, LsPlace *at, bool *found, LsError *e);

#endif
