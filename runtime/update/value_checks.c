/* runtime/update/value_checks.c -- see value_checks.h. */
#include "runtime/base/tensor_copy.h"
#include "runtime/update/value_checks.h"

#include <inttypes.h>
#include <math.h>

static bool finite_16(const uint16_t *at, int64_t n, uint16_t exponent)
{
    uint32_t bad = 0;
    for (int64_t i = 0; i < n; i++)
        bad |= (at[i] & exponent) == exponent;
    return bad == 0;
}

static bool all_finite(LsDataType type, const void *at, int64_t n, int real_bytes)
{
    const uint32_t *f = at;
    const uint64_t *d = at;
    uint32_t bad = 0;
    if (type != LS_DT_REAL)
        return finite_16(at, n, type == LS_DT_BF16 ? 0x7f80 : 0x7c00);
    if (real_bytes == 8)
        for (int64_t i = 0; i < n; i++)
            bad |= (d[i] & 0x7ff0000000000000u) == 0x7ff0000000000000u;
    else
        for (int64_t i = 0; i < n; i++)
            bad |= (f[i] & 0x7f800000u) == 0x7f800000u;
    return bad == 0;
}

static void scan(LsCheck *c, uint32_t step, uint32_t result, LsDataType type, const char *at,
                 int64_t n)
{
    int bytes = c->g->p->real_bytes;
    if (all_finite(type, at, n, bytes))
        return;
    for (int64_t i = 0; i < n; i++) {
        double v = ls_element_at(type, at + i * ls_data_bytes(type, bytes), bytes);
        LsFound *f = isnan(v) ? &c->nan : isinf(v) ? &c->inf : NULL;
        if (f && !f->there)
            *f = (LsFound){true, step, result, i, v};
    }
}

static void check_after(void *self, uint32_t step)
{
    LsCheck *c = self;
    const LsStep *s = &c->t->step[step];
    if (c->nan.there)
        return;
    for (uint32_t r = 0; r < s->nout; r++) {
        int64_t n = c->g->p->argument.count[s->count + r];
        LsDataType type = (LsDataType)c->g->p->argument.type[s->count + r];
        const LsAddress to = c->g->p->argument.address[s->arg + s->nin + r];
        if (!ls_holds_reals(type) || to.space == LS_AT_STATE)   /* a sum: its summands were looked
                                                                 * at */
            continue;
        const void *at = ls_engine_view(c->g, to, n * ls_data_bytes(type, c->g->p->real_bytes));
        if (at)
            scan(c, step, r, type, at, n);
    }
}

void ls_check_start(LsCheck *c, const LsEngine *g, const LsPhaseTable *t)
{
    *c = (LsCheck){.g = g, .t = t};
}

LsHook ls_check_hook(LsCheck *c) { return (LsHook){.after = check_after, .self = c}; }

/* A state tensor that is not finite: the update may overflow a parameter although every gradient is
 * finite. Sums within an update may keep what is not finite of a skipped update until the next
 * one. */
static const LsStateTensor *bad_state(const LsEngine *g)
{
    for (uint32_t k = 0; k < g->p->nstate; k++) {
        const LsStateTensor *s = &g->p->state[k];
        if (s->kind == LS_STATE_SUM || !ls_holds_reals(s->t.type))
            continue;
        int64_t n = ls_tensor_count(&s->t);
        if (!all_finite(LS_DT_REAL, ls_memory_view(g->m, s->t.at, n * g->p->real_bytes), n,
                        g->p->real_bytes))
            return s;
    }
    return NULL;
}

bool ls_check_clean(const LsCheck *c, int64_t update, LsError *e)
{
    const LsFound *f =
        c->inf.there && (!c->nan.there || c->inf.step <= c->nan.step) ? &c->inf : &c->nan;
    if (!f->there)
        return true;
    const LsStep *s = &c->t->step[f->step];
    if (f == &c->inf && c->nan.there && c->nan.step != f->step)
        return ls_fail(e, LS_EXIT_DIVERGED,
                       "step %" PRId64 ": node '%s' (%s) is the first to give an "
                       "infinity (result %u, element %" PRId64
                       "), and '%s' (%s) the first to give a "
                       "NaN",
                       update, s->name, s->op, f->result, f->element, c->t->step[c->nan.step].name,
                       c->t->step[c->nan.step].op);
    return ls_fail(e, LS_EXIT_DIVERGED,
                   "step %" PRId64 ": node '%s' (%s) is the first to give a value "
                   "that is not finite: %g in result %u, element %" PRId64,
                   update, s->name, s->op, f->value, f->result, f->element);
}

bool ls_check_end(const LsCheck *c, double loss, int64_t update, LsError *e)
{
    const LsStateTensor *state = bad_state(c->g);
    if (!c->nan.there && isfinite(loss) && !state)
        return true;
    if (!c->nan.there && !c->inf.there)
        return ls_fail(e, LS_EXIT_DIVERGED, "step %" PRId64 ": the update made '%s' not finite",
                       update, state ? state->t.name : "loss");
    return ls_check_clean(c, update, e);
}
