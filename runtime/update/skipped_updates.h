/* runtime/update/skipped_updates.h -- what a run says of its loss scale, and when it gives up.
 *
 * The program's last step moves the scale, which is state (LsProgram.scaling). A step whose
 * gradients are not finite changes nothing else: it counts as a step, but not as an update of the
 * optimizer, so neither Adam's count nor the learning rate's schedule moves. */
#ifndef LS_RUNTIME_UPDATE_SKIPPED_UPDATES_H
#define LS_RUNTIME_UPDATE_SKIPPED_UPDATES_H

#include "runtime/data/batch_loader.h"
#include "runtime/engine/program_memory.h"

enum { LS_MAX_SKIPPED = 100 };  /* updates in a row, if nobody asks for another number */

typedef struct LsScaleSeen {
    double scale;
    int64_t skipped, row;       /* updates: in all, and the last ones in a row */
} LsScaleSeen;

/* Zeros if the program has no loss scale. */
LsScaleSeen ls_scaling_read(const LsMemory *m);
/* Prints that an update was skipped (ls_note); why: the first value that is not finite, or no
 * error; NULL: not looked for. */
void ls_scaling_tell(FILE *to, const LsScaleSeen *was, const LsScaleSeen *is, int64_t update,
                     const LsError *why);
/* An error: too many updates in a row were skipped. Names what the data or `why` tell of the
 * cause. */
bool ls_scaling_give_up(const LsScaleSeen *is, int64_t update, const LsError *why,
                        const LsPass *pass, int64_t batch, LsError *e);
/* asked: updates in a row that may be skipped; 0: as usual. */
static inline int64_t ls_most_skipped(int64_t asked) { return asked > 0 ? asked : LS_MAX_SKIPPED; }

#endif
