/* runtime/library/net_values.c -- see net.h: outputs, and values of the state. */
#include "runtime/library/net.h"
#include "runtime/library/net_state.h"

#include "runtime/base/tensor_copy.h"
#include "runtime/update/evaluate.h"
#include "runtime/update/short_batch.h"

#include <string.h>

/* ---- outputs ---- */

/* The watch of output k; NULL: there is none. */
static const LsWatch *output(const LsProgram *p, uint32_t k)
{
    for (uint32_t i = 0; i < p->phase.eval.nwatch; i++)
        if (strncmp(p->phase.eval.watch[i].key, "out/", 4) == 0 && k-- == 0)
            return &p->phase.eval.watch[i];
    return NULL;
}

const LsTensor *ls_net_output(const LsProgram *p, uint32_t k)
{
    const LsWatch *w = output(p, k);
    return w != NULL ? &w->t : NULL;
}

/* A prediction under way. */
typedef struct Prediction {
    LsNet *n;
    void *const *to;            /* by output */
    int64_t done;               /* samples */
} Prediction;

/* Copies the rows of a batch that count. */
static void copy_output(const Prediction *r, const LsWatch *w, void *to)
{
    const LsProgram *p = r->n->t.p;
    LsTensor t = w->t;
    t.type = ls_holds_reals(t.type) ? LS_DT_REAL : t.type;
    const int64_t each = ls_data_bytes(t.type, p->real_bytes), all = ls_tensor_count(&t);
    const bool rows = t.rank > 0 && t.dim[0] % p->division.samples == 0;
    const int64_t row = rows ? all / p->division.samples : all;
    const int64_t valid = r->n->t.engine.run.valid;
    LsWalk walk = ls_walk_start(&t);
    ls_walk_read(&walk, r->n->seen.copy + r->n->seen.offset[w - p->phase.eval.watch],
                 (char *)to + (rows ? r->done * row * each : 0), rows ? valid * row : all, each);
}

static void after_step(void *self, uint32_t step)
{
    Prediction *r = self;
    const LsProgram *p = r->n->t.p;
    const LsWatch *w;
    if (step + 1 != p->phase.eval.nstep)
        return;
    for (uint32_t k = 0; (w = output(p, k)) != NULL; k++)
        if (r->to[k] != NULL)
            copy_output(r, w, r->to[k]);
    r->done += r->n->t.engine.run.valid;
}

bool ls_net_predict(LsNet *n, const void *const *input, int64_t samples, void *const *to,
                    LsError *e)
{
    LsTraining *t = &n->t;
    Prediction r = {n, to, 0};
    LsScore score;
    if (t->p->phase.eval.nstep == 0)
        return ls_fail(e, LS_EXIT_USAGE, "the program has no evaluation form");
    if (!ls_net_wait(n, NULL, e) || !ls_net_take(n, input, samples, true, e)
        || !ls_short_batch_evaluates(t->p, &t->feed.train, e)
        || (n->seen.copy == NULL && !ls_dump_open(&n->seen, &t->engine, &t->p->phase.eval, e)))
        return false;
    const LsHook hook[] = {ls_dump_hook(&n->seen), {NULL, after_step, &r, NULL}};
    const LsOnlooker by = {.hook = hook, .nhook = 2};
    return ls_evaluate(t, &t->feed.train, &by, &score, e);
}

/* ---- the state ---- */

void *ls_net_state(LsNet *n, uint32_t k, const LsStateTensor **t)
{
    if (k >= n->t.p->nstate)
        return NULL;
    *t = &n->t.p->state[k];
    return ls_memory_at(&n->t.memory, (*t)->t.at);
}

static const LsStateTensor *find(LsNet *n, uint32_t k, LsError *e)
{
    const LsProgram *p = n->t.p;
    if (k < p->nstate)
        return ls_net_after(n, e) ? &p->state[k] : NULL;
    ls_fail(e, LS_EXIT_USAGE, "the state has %u tensors, and no tensor %u", p->nstate, k);
    return NULL;
}

bool ls_net_read(LsNet *n, uint32_t k, void *to, LsError *e)
{
    const LsStateTensor *s = find(n, k, e);
    const int bytes = n->t.p->real_bytes;
    const void *at =
        s != NULL ? ls_memory_view(&n->t.memory, s->t.at, ls_tensor_bytes(&s->t, bytes)) : NULL;
    if (at == NULL)
        return false;
    LsWalk walk = ls_walk_start(&s->t);
    ls_walk_read(&walk, at, to, ls_tensor_count(&s->t), ls_data_bytes(s->t.type, bytes));
    return ls_memory_ok(&n->t.memory, e);
}

bool ls_net_write(LsNet *n, uint32_t k, const void *from, LsError *e)
{
    const LsStateTensor *s = find(n, k, e);
    const int bytes = n->t.p->real_bytes;
    void *at =
        s != NULL ? ls_memory_view(&n->t.memory, s->t.at, ls_tensor_bytes(&s->t, bytes)) : NULL;
    if (at == NULL)
        return false;
    LsWalk walk = ls_walk_start(&s->t);
    ls_walk_write(&walk, from, at, ls_tensor_count(&s->t), ls_data_bytes(s->t.type, bytes));
    ls_memory_store(&n->t.memory, s->t.at, ls_tensor_bytes(&s->t, bytes));
    return ls_memory_ok(&n->t.memory, e);
}
