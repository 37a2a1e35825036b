/* runtime/trainer/checkpoint_folder.h -- the checkpoints of one folder, named
 * step-NNNNNNNNN.safetensors by their update. */
#ifndef LS_RUNTIME_TRAINER_CHECKPOINT_FOLDER_H
#define LS_RUNTIME_TRAINER_CHECKPOINT_FOLDER_H

#include "runtime/checkpoint/checkpoint.h"

enum { LS_KEEP = 1024 };
typedef struct LsSaver {
    const char *folder;         /* NULL: no checkpoints are saved */
    int64_t keep;               /* number of files to keep; 0: all */
    int64_t update[LS_KEEP];    /* of the existing files, ascending */
    int count;
    char path[LS_PATH];         /* of the last one saved or loaded */
    int held;                   /* the folder, which no other run may save to meanwhile; -1: not
                                 * held */
} LsSaver;

/* Creates the folder if needed and lists its checkpoints. holds: this run will save there, and no
 * other may at the same time. */
bool ls_saver_open(LsSaver *s, const char *folder, int64_t keep, bool holds, LsError *e);
void ls_saver_close(LsSaver *s);
/* Checks that the folder has no checkpoints of another run, among which --resume=auto might choose
 * later: none but those that the run continues, up to `at` (from NULL: it continues none; else the
 * checkpoint that was loaded). With `overwrite` they are removed instead. */
bool ls_saver_is_free(LsSaver *s, const char *from, int64_t at, bool overwrite, LsError *e);
/* The best evaluation's, which is none of the run's last ones: "FOLDER/best.safetensors". Returns
 * path. */
const char *ls_saver_best(const LsSaver *s, char path[LS_PATH]);
bool ls_saver_save(LsSaver *s, const LsMemory *m, const LsPlace *at, LsError *e);
/* Loads the newest intact file; *found = false when the folder has none. A damaged file is reported
 * on stderr and skipped; it is an error when all are damaged. */
bool ls_saver_load(LsSaver *s, const LsMemory *m, LsPlace *at, bool *found, LsError *e);

#endif
