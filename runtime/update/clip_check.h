/* runtime/update/clip_check.h -- the largest gradient of a sample against --check-clip. */
#ifndef LS_RUNTIME_UPDATE_CLIP_CHECK_H
#define LS_RUNTIME_UPDATE_CLIP_CHECK_H

#include "runtime/update/training.h"

/* Before the first micro-batch of a private update, on the batch that was fed. An error: the clip
 * is exceeded. */
bool ls_clip_check(LsTraining *t, const LsBatch *b, LsError *e);

#endif
