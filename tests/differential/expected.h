/* tests/differential/expected.h -- what a step of a random graph must leave, and how far rounding
 * alone can move it. */
#ifndef LS_TESTS_DIFFERENTIAL_EXPECTED_H
#define LS_TESTS_DIFFERENTIAL_EXPECTED_H

#include "tests/differential/interpreter.h"
#include "tests/differential/random_net.h"

/* The outputs, the loss, the gradients, all state that is updated. */
typedef struct Expected {
    uint32_t n;
    const char **name; /* "out/0", "loss", "grad/NAME", "state/NAME" */
    LsShape *shape;
    double **value, **off; /* value, and how far noise moved it */
} Expected;

/* Noise as in interpreter_run, in that many runs. */
Expected expected_keep(Net *net, const Noise *noise, int times);
/* Widens `off` by further runs. */
void expected_widen(Net *net, Expected *want, const Noise *noise, int times);

/* Compares the gradients with differences of the loss. Returns the number of parameters whose
 * gradient is wrong, after a line about each; *skipped: those where the differences do not agree
 * with themselves. */
int expected_check_gradients(Net *net, int *checked, int *skipped);

#endif
