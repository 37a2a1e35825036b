/* runtime/engine.c -- see engine.h. */
#include "runtime/engine.h"

#include <stdlib.h>

static uint32_t count_addresses(const LsProgram *p)
{
    const LsPhaseTable *phase[] = {&p->train, &p->eval};
    uint32_t n = 0;
    for (int f = 0; f < 2; f++)
        for (uint32_t k = 0; k < phase[f]->nstep; k++) {
            uint32_t end = phase[f]->step[k].arg + phase[f]->step[k].narg;
            n = end > n ? end : n;
        }
    return n;
}

bool ls_engine_open(LsEngine *g, const LsProgram *p, const LsMemory *m, LsError *e)
{
    uint32_t n = count_addresses(p);
    *g = (LsEngine){.p = p, .m = m};
    g->arg = calloc(n + 1, sizeof *g->arg);
    g->patch = calloc(n + 1, sizeof *g->patch);
    if (!g->arg || !g->patch)
        return ls_fail(e, LS_EXIT_FAIL, "out of memory");
    for (uint32_t k = 0; k < n; k++) {
        g->arg[k] = ls_memory_at(m, p->address[k]);
        if (p->address[k].space == LS_AT_INPUT)
            g->patch[g->npatch++] = (LsPatch){k, (uint32_t)p->address[k].offset};
    }
    return true;
}

void ls_engine_close(LsEngine *g)
{
    free(g->arg);
    free(g->patch);
    *g = (LsEngine){0};
}

void ls_engine_feed(LsEngine *g, const LsLoader *l, const LsBatch *b)
{
    for (uint32_t k = 0; k < g->npatch; k++)
        g->arg[g->patch[k].arg] = b->input + l->offset[g->patch[k].input];
    g->run.valid = b->valid;
}

void ls_engine_run(LsEngine *g, const LsPhaseTable *t, const LsHook *hook, int nhook)
{
    for (uint32_t k = 0; k < t->nstep; k++) {
        for (int h = 0; h < nhook; h++)
            if (hook[h].before)
                hook[h].before(hook[h].self, k);
        t->step[k].run(&g->run, g->arg + t->step[k].arg);
        for (int h = 0; h < nhook; h++)
            if (hook[h].after)
                hook[h].after(hook[h].self, k);
    }
}

double ls_engine_loss(const LsEngine *g, const LsPhaseTable *t)
{
    return ls_real_at(ls_memory_at(g->m, t->loss), g->p->real_bytes);
}
