/* runtime/library/net_gradients.c -- see net.h: gradients without an update. */
#include "runtime/library/net.h"
#include "runtime/library/net_state.h"

#include "runtime/base/tensor_copy.h"
#include "runtime/update/micro_batch.h"

#include <stdlib.h>
#include <string.h>

/* The gradients under way: of the micro-batches so far, each times its weight. */
typedef struct Sum {
    LsNet *n;
    LsDump dump;                /* of a micro-batch */
    void *const *to;            /* by tensor of the state, or NULL */
    const LsWatch **watch;      /* likewise */
    double **sum;               /* likewise, in memory order */
    char *state;                /* as it was */
} Sum;

/* Programs keep the watches of all micro-batches in `train`, of the last one also in `last`. */
static const LsPhaseTable *table_of(const LsProgram *p) { return &p->phase.train; }

/* The watch of a gradient; NULL: no step stores it. */
static const LsWatch *find_watch(const LsPhaseTable *table, const LsStateTensor *s)
{
    static const char key[] = "grad/";
    for (uint32_t i = 0; i < table->nwatch; i++)
        if (strncmp(table->watch[i].key, key, strlen(key)) == 0
            && strcmp(table->watch[i].key + strlen(key), s->t.name) == 0)
            return &table->watch[i];
    return NULL;
}

static bool open_tensor(Sum *u, uint32_t k, LsError *e)
{
    const LsProgram *p = u->n->t.p;
    const LsStateTensor *s = &p->state[k];
    if (s->kind != LS_STATE_PARAM)
        return ls_fail(e, LS_EXIT_USAGE, "'%s' is no parameter and has no gradient", s->t.name);
    u->watch[k] = find_watch(table_of(p), s);
    if (u->watch[k] == NULL)
        return ls_fail(e, LS_EXIT_USAGE,
                       "the gradient of '%s' is applied as it is computed: compile with "
                       "--store-gradients",
                       s->t.name);
    u->sum[k] = calloc((size_t)ls_tensor_count(&s->t) + 1, sizeof *u->sum[k]);
    return u->sum[k] != NULL || ls_fail(e, LS_EXIT_FAIL, "no memory for a gradient");
}

static LsAddress whole_state(void) { return (LsAddress){LS_AT_STATE, 0}; }

static bool open_sum(Sum *u, LsError *e)
{
    const LsProgram *p = u->n->t.p;
    const size_t bytes = (size_t)p->bytes.state;
    u->watch = calloc(p->nstate + 1u, sizeof *u->watch);
    u->sum = calloc(p->nstate + 1u, sizeof *u->sum);
    u->state = malloc(bytes + 1);
    if (u->watch == NULL || u->sum == NULL || u->state == NULL)
        return ls_fail(e, LS_EXIT_FAIL, "no memory for a copy of the state, %zu bytes", bytes);
    const void *now = ls_memory_view(&u->n->t.memory, whole_state(), p->bytes.state);
    if (now == NULL)
        return ls_memory_ok(&u->n->t.memory, e);
    memcpy(u->state, now, bytes);
    for (uint32_t k = 0; k < p->nstate; k++)
        if (u->to[k] != NULL && !open_tensor(u, k, e))
            return false;
    return ls_dump_open(&u->dump, &u->n->t.engine, table_of(p), e);
}

static void close_sum(Sum *u)
{
    LsTraining *t = &u->n->t;
    for (uint32_t k = 0; u->sum != NULL && k < t->p->nstate; k++)
        free(u->sum[k]);
    free(u->sum);
    free(u->watch);
    free(u->state);
    ls_dump_close(&u->dump);
}

static void add(Sum *u, double weight)
{
    for (uint32_t k = 0; k < u->n->t.p->nstate; k++)
        if (u->watch[k] != NULL)
            ls_dump_add(&u->dump, (uint32_t)(u->watch[k] - u->dump.t->watch), weight, u->sum[k]);
}

/* A micro-batch with the random numbers that it has in an update, as an update of its own with the
 * rate 0: parameters stay. */
static bool run_part(Sum *u, const LsBatch *b, int64_t k, int64_t part, LsLoss *loss, LsError *e)
{
    LsTraining *t = &u->n->t;
    LsRun *run = &t->engine.run;
    const LsHook hook = ls_dump_hook(&u->dump);
    ls_engine_feed(&t->engine, &t->feed.loader, b);
    ls_part_run(t, b, k, part);
    run->first = run->apply = true;
    run->alone = false;
    run->share = 1;
    run->lr = 0;
    return ls_engine_run(&t->engine, u->dump.t, &hook, 1, e)
           && ls_engine_loss(&t->engine, u->dump.t, t->engine.slot, b->valid, loss, e);
}

static bool run_parts(Sum *u, LsMean *mean, LsError *e)
{
    LsTraining *t = &u->n->t;
    const int64_t parts = t->feed.pass.end;
    t->under_way.samples = t->feed.train.samples;
    for (int64_t k = 0, part = 0; k < parts; k++) {
        const LsBatch *b = ls_loader_next(&t->feed.loader, e);
        LsLoss loss;
        if (b == NULL || (b->valid > 0 && !run_part(u, b, k, part, &loss, e)))
            return false;
        if (b->valid > 0) {
            ls_mean_add(mean, loss);
            add(u, parts > 1 && loss.weight != 0 ? loss.weight : 1);
            part++;
        }
        ls_loader_release(&t->feed.loader);
    }
    return true;
}

static void give(const Sum *u, double by)
{
    const LsProgram *p = u->n->t.p;
    for (uint32_t k = 0; k < p->nstate; k++) {
        const LsWatch *w = u->watch[k];
        if (w == NULL)
            continue;
        LsWalk walk = ls_walk_start(&w->t);
        for (int64_t i = 0, count = ls_tensor_count(&w->t); i < count; i++)
            ls_real_put((char *)u->to[k] + i * p->real_bytes, u->sum[k][ls_walk_next(&walk)] / by,
                        p->real_bytes);
    }
}

bool ls_net_gradients(LsNet *n, const void *const *input, int64_t samples, void *const *gradient,
                      double *loss, LsError *e)
{
    LsTraining *t = &n->t;
    Sum u = {.n = n, .to = gradient};
    LsMean mean = {0};
    if (ls_is_private(t->p))
        return ls_fail(e, LS_EXIT_USAGE, "gradients of a private update are its secret");
    if (!ls_net_wait(n, NULL, e) || !ls_net_take(n, input, samples, false, e)
        || !ls_net_divide(n, samples, e))
        return false;
    bool ok = open_sum(&u, e);
    if (ok) {
        ls_loader_begin(&t->feed.loader, &t->feed.pass);
        ok = run_parts(&u, &mean, e);
        ls_memory_write(&t->memory, whole_state(), u.state, t->p->bytes.state);
        ok = ok && ls_memory_ok(&t->memory, e);
        t->under_way = (LsUnderWay){0};
    }
    if (ok) {
        if (loss != NULL)
            *loss = ls_mean(&mean);
        give(&u, t->feed.pass.end > 1 && mean.weight != 0 ? mean.weight : 1);
    }
    close_sum(&u);
    return ok;
}
