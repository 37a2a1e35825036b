/* tests/differential/interpreter.h -- runs a graph node by node in doubles, by the rows'
 * definitions (tests/support/eval.h). */
#ifndef LS_TESTS_DIFFERENTIAL_INTERPRETER_H
#define LS_TESTS_DIFFERENTIAL_INTERPRETER_H

#include "compiler/ir/graph.h"
#include "tests/support/fuzz.h"

enum { INTERPRETER_SEED = 7 }; /* of the run; the step is 0 */
#define INTERPRETER_LR 0.05

typedef struct Interpreter Interpreter;

Interpreter *interpreter_new(const LsGraph *g);
/* Computes the nodes that were appended since. input: data of the inputs, as of constants. */
void interpreter_follow(Interpreter *r, const void *const input[]);
double *interpreter_of(const Interpreter *r, LsValueId v);

/* Rounding errors: relative ones of at most `relative`; numbers below `least` may vanish.
 * fixed_...: of constants and what follows from them alone, which the compiler keeps as floats. */
typedef struct Noise { double relative, least, fixed, fixed_least; } Noise;

/* Runs all nodes anew, with every leaf and every result changed by random errors; NULL: exactly. */
void interpreter_run(Interpreter *r, const void *const input[], const Noise *noise, Dice *d);

/* Single nodes, and values without a node: their initial numbers. */
void interpreter_node(Interpreter *r, LsNodeId n);
void interpreter_load(Interpreter *r, uint32_t value, const void *const input[]);

#endif
