/* tests/differential/reference.h -- the interpreter's view of a graph: all values in doubles, by the rows' definitions
 * (tests/support/eval.h), and how far rounding alone can move each of them. */
#ifndef LS_TESTS_DIFFERENTIAL_REFERENCE_H
#define LS_TESTS_DIFFERENTIAL_REFERENCE_H

#include "tests/differential/random_net.h"

enum { REFERENCE_SEED = 7 };     /* of the run; the step is 0 */
#define REFERENCE_LR 0.05

typedef struct Reference Reference;

Reference *reference_new(const LsGraph *g);
/* Computes the nodes that were appended since. data: of inputs. */
void reference_follow(Reference *r, const void *const input[]);
const double *reference_of(const Reference *r, LsValueId v);

/* Runs all nodes anew, with every leaf and every result changed by a random relative error of at most `noise` (0: exactly);
 * constants and what follows from them alone by `fixed`. */
void reference_run(Reference *r, const void *const input[], double noise, double fixed, Dice *d);

/* What a step leaves: the outputs, the loss, the gradients, all state; `room` of each, to be freed by the arena. */
typedef struct Kept {
    uint32_t n;
    const char **name;          /* "out/0", "loss", "grad/NAME", "state/NAME" */
    LsShape *shape;
    double **value, **off;      /* value, and how far noise moved it */
} Kept;
Kept reference_keep(Net *net, double noise, double fixed, int times);
/* Widens `off` by further runs. */
void reference_widen(Net *net, Kept *kept, double noise, double fixed, int times);

/* Compares the gradients with differences of the loss. Returns the number of parameters whose gradient
 * is wrong, after a line about each; *skipped: those where the differences do not agree with themselves. */
int reference_check_gradients(Net *net, int *checked, int *skipped);

#endif
