/* runtime/predict/serve.h -- --serve-stdin: every line of standard input is answered by a line of
 * JSON, in order, until the input ends.
 *
 * Lines that wait make a batch. What is wrong with a line is its answer, {"error": "..."}; the next
 * line is read as if nothing had been. */
#ifndef LS_RUNTIME_PREDICT_SERVE_H
#define LS_RUNTIME_PREDICT_SERVE_H

#include "runtime/predict/generate.h"
#include "runtime/predict/output_rows.h"

typedef struct LsServeOptions {
    LsDataOptions data;         /* how values are scaled */
    const char *outputs;        /* --predict-outputs, or NULL */
    LsClassNames classes;
    int from;                   /* file descriptor */
    FILE *to;
    const volatile sig_atomic_t *stop;
} LsServeOptions;

/* Samples. */
bool ls_serve(LsEngine *g, LsLoader *l, const LsServeOptions *o, LsError *e);
/* Prompts, of that generator. */
bool ls_serve_prompts(LsGenerator *x, const LsServeOptions *o, LsError *e);

#endif
