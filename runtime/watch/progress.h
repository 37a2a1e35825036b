/* runtime/watch/progress.h -- the progress display during training, on stderr. */
#ifndef LS_RUNTIME_WATCH_PROGRESS_H
#define LS_RUNTIME_WATCH_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef struct LsProgress {
    FILE *to;
    enum { LS_PROGRESS_NONE, LS_PROGRESS_PLAIN, LS_PROGRESS_BAR } mode;
    bool utf8, shown;           /* shown: a bar is on the current line */
    int64_t bytes, budget;      /* of the plan */
    int64_t last_ns, last_done; /* at the last line */
    double rate;                /* batches per second, smoothed; 0: not known yet */
} LsProgress;

typedef struct LsProgressAt {
    const char *what;           /* "epoch 3/10" */
    int64_t done, of;           /* batches in this bar */
    int64_t left;               /* batches to the end of the run */
    double loss;
    const double *losses; int64_t nlosses;      /* of an ensemble's members: the least and the
                                                 * largest are shown */
    double samples, tokens;     /* of a batch; 0: not shown */
} LsProgressAt;

/* mode: auto, bar, plain, none. */
void ls_progress_open(LsProgress *g, const char *mode, int64_t bytes, int64_t budget);
/* Whether ls_progress_show would print something now. */
bool ls_progress_due(const LsProgress *g);
/* May be called after every batch; prints at most ten times a second, or every ten seconds in plain
 * mode. */
void ls_progress_show(LsProgress *g, const LsProgressAt *at);
/* Clears the bar, before other output. */
void ls_progress_clear(LsProgress *g);
/* "1.9 GiB"; returns text. */
char *ls_progress_bytes(int64_t bytes, char text[32]);

#endif
