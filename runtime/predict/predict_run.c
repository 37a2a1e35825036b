/* runtime/predict/predict_run.c -- see predict_run.h. */
#include "runtime/predict/predict_run.h"

#include "runtime/engine/engine.h"

/* One batch; outputs->seen has its values then. */
static bool run_batch(LsEngine *g, LsLoader *l, const LsBatch *b, LsOutputs *o, LsError *e)
{
    const LsHook hook = ls_dump_hook(&o->seen);
    LsLoss loss;
    return ls_engine_evaluate(g, l, b, &hook, 1, &loss, e);
}

static bool run(LsEngine *g, LsLoader *l, const LsDataset *data, LsOutputs *o, LsPredictFile *f,
                const volatile sig_atomic_t *stop, LsError *e)
{
    LsPass pass = {.data = data};
    pass.end = ls_batches_per_epoch(&pass);
    ls_loader_begin(l, &pass);
    for (int64_t k = 0; k < pass.end && !*stop; k++) {
        const LsBatch *b = ls_loader_next(l, e);
        if (b == NULL || !run_batch(g, l, b, o, e) || !ls_predict_put(f, b->valid, e))
            return false;
        ls_loader_release(l);
    }
    return true;
}

bool ls_predict(LsEngine *g, LsLoader *l, const LsDataset *data, const LsPredictOptions *o,
                const volatile sig_atomic_t *stop, int64_t *done, LsError *e)
{
    LsOutputs outputs;
    LsPredictFile f = {.kind = ls_predict_kind(o->to, o->as, e),
                       .path = o->to,
                       .outputs = &outputs,
                       .classes = data->classes,
                       .bits = g->p->target.bits,
                       .samples = data->samples};
    bool ok = f.kind != NULL && ls_outputs_open(&outputs, g, o->outputs, e);
    if (f.kind == NULL)
        return false;
    ok = ok && ls_predict_open(&f, e) && run(g, l, data, &outputs, &f, stop, e);
    ok = ls_predict_close(&f, ok && !*stop, e) && ok;
    ls_outputs_close(&outputs);
    *done = f.done;
    return ok || (*stop && e->code == LS_EXIT_DONE);
}
