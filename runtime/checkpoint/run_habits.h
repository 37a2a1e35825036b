/* runtime/checkpoint/run_habits.h -- what a checkpoint keeps of the way a run trains: samples that
 * it holds out, the best evaluation so far. */
#ifndef LS_RUNTIME_CHECKPOINT_RUN_HABITS_H
#define LS_RUNTIME_CHECKPOINT_RUN_HABITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LS_METRIC_NAME = 64 };

/* The evaluations so far. */
typedef struct LsBest {
    char metric[LS_METRIC_NAME];        /* by which they are compared; "": there is none yet */
    double value; int64_t update;       /* of the best one */
    double mark;                /* what a later one must improve on (--min-delta) */
    int64_t waited;             /* evaluations since then that did not */
} LsBest;

typedef struct LsHabits {
    int64_t held, held_of;      /* samples that are held out, of so many; 0: none */
    int64_t limit;              /* batches of an epoch; 0: all */
    LsBest best;
} LsHabits;

enum { LS_HABITS_TEXT = 320 };
/* "" for a run that has none of this. Returns text. */
const char *ls_habits_text(const LsHabits *h, char text[LS_HABITS_TEXT]);
/* False: it is no such text. */
bool ls_habits_parse(LsHabits *h, const char *text);

#endif
