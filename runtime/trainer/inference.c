/* runtime/trainer/inference.c -- see inference.h. */
#include "runtime/trainer/inference.h"

#include "runtime/base/interrupt.h"
#include "runtime/predict/predict_run.h"
#include "runtime/trainer/run_results.h"

#include <inttypes.h>
#include <stdio.h>

static bool predict(LsTrainer *t, LsError *e)
{
    const LsTrainerOptions *o = &t->o;
    const LsPredictOptions to = {o->predict, o->predict_as, o->predict_outputs};
    int64_t done;
    if (!ls_predict(&t->engine, &t->feed.loader, &t->feed.train, &to, t->ending.signal, &done, e))
        return false;
    if (!*t->ending.signal)
        printf("predicted %" PRId64 " samples with the weights of step %" PRId64 ": %s\n", done,
               t->place.update, o->predict);
    else
        fprintf(stderr, "note: %s is not written: interrupted after %" PRId64 " of %" PRId64
                " samples\n", o->predict, done, t->feed.train.samples);
    return true;
}

bool ls_infer(LsTrainer *t, LsError *e)
{
    ls_interrupt_allow(false, 0);
    const bool ok = predict(t, e);
    ls_interrupt_forbid();
    t->ending.agreed = (int)*t->ending.signal;
    t->ending.interrupted = t->ending.agreed != 0;
    return ok && !t->ending.interrupted ? ls_write_results(t, e) : ok;
}
