/* runtime/trainer/export_scaling.h -- --export-scaling: nodes in front of the exported model that
 * scale its inputs as the data were, so that it takes what their files have.
 *
 * Input x becomes the result of Cast, Mul (scale), Sub (mean) and Div (std), as far as they are
 * needed, of a new input x_raw: of bytes where the data are bytes, else of float32. */
#ifndef LS_RUNTIME_TRAINER_EXPORT_SCALING_H
#define LS_RUNTIME_TRAINER_EXPORT_SCALING_H

#include "runtime/data/dataset.h"

typedef struct LsFront {
    unsigned char *bytes; size_t n;     /* fields of the graph that come before its own */
    unsigned char head[32]; size_t nhead;       /* of the graph, with these */
    size_t head_at, graph_at;   /* where the model file has its head, and what the head counts */
    size_t *input; uint32_t ninput;     /* where it has the tags of inputs that are none any more */
} LsFront;

/* Whether some input of the data is scaled; else an LS_EXIT_USAGE error. */
bool ls_front_check(const LsDataset *d, LsError *e);
bool ls_front_make(LsFront *f, const LsProgram *p, const LsDataset *d, LsError *e);
void ls_front_free(LsFront *f);
/* Bytes by which the values of the model file lie later. */
static inline int64_t ls_front_shift(const LsFront *f)
{
    return (int64_t)(f->head_at + f->nhead + f->n) - (int64_t)f->graph_at;
}
/* The tag of a value that is no input. */
enum { LS_FRONT_VALUE = 13 << 3 | 2 };

#endif
