/* runtime/update/member_state.c -- see member_state.h. */
#include "runtime/update/member_state.h"

#include "runtime/base/note.h"
#include "runtime/base/tensor_copy.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Elements of the logits that evaluation judges; 0: it judges none. */
static int64_t logits_of(const LsProgram *p)
{
    int64_t n = 0;
    for (uint32_t k = 0; k < p->phase.eval.nwatch; k++)
        if (p->target.classes > 0 && strcmp(p->phase.eval.watch[k].key, "logits") == 0)
            n = ls_tensor_count(&p->phase.eval.watch[k].t) / p->ensemble.members;
    return n;
}

bool ls_member_state_open(LsMemberState *s, const LsProgram *p, double lr, uint64_t seed,
                          LsError *e)
{
    const size_t n = (size_t)p->ensemble.members;
    *s = (LsMemberState){.n = p->ensemble.members};
    if (n == 0)
        return true;
    s->seeds = calloc(n, sizeof *s->seeds);
    s->base = calloc(n, sizeof *s->base);
    s->rates = calloc(n, sizeof *s->rates);
    s->part = calloc(n, sizeof *s->part);
    s->of_epoch = calloc(n, sizeof *s->of_epoch);
    s->loss = calloc(n, sizeof *s->loss);
    s->told = calloc(n, sizeof *s->told);
    s->val_loss = calloc(n, sizeof *s->val_loss);
    s->right = calloc(n, sizeof *s->right);
    s->mean = calloc((size_t)logits_of(p) + 1, sizeof *s->mean);
    if (!s->seeds || !s->base || !s->rates || !s->part || !s->of_epoch || !s->loss || !s->told
        || !s->val_loss || !s->right || !s->mean)
        return ls_fail(e, LS_EXIT_FAIL, "out of memory");
    for (size_t k = 0; k < n; k++) {
        s->seeds[k] = seed + k;
        s->base[k] = lr;
    }
    return true;
}

void ls_member_state_close(LsMemberState *s)
{
    free(s->seeds);
    free(s->base);
    free(s->rates);
    free(s->part);
    free(s->of_epoch);
    free(s->loss);
    free(s->told);
    free(s->val_loss);
    free(s->right);
    free(s->mean);
    *s = (LsMemberState){0};
}

void ls_member_state_add(LsMemberState *s, const LsEngine *g)
{
    for (int64_t k = 0; k < s->n; k++)
        ls_mean_add(&s->part[k], g->loss[k]);
}

void ls_member_state_end(LsMemberState *s)
{
    for (int64_t k = 0; k < s->n; k++) {
        s->loss[k] = ls_mean(&s->part[k]);
        ls_mean_join(&s->of_epoch[k], &s->part[k]);
        s->part[k] = (LsMean){0};
    }
}

void ls_member_state_judged(LsMemberState *s)
{
    for (int64_t k = 0; k < s->n; k++) {
        s->val_loss[k] = ls_mean(&s->part[k]);
        s->part[k] = (LsMean){0};
    }
}

void ls_member_state_tell(LsMemberState *s, int64_t update, FILE *notes)
{
    for (int64_t k = 0; k < s->n; k++) {
        if (s->told[k] || isfinite(s->loss[k]))
            continue;
        s->told[k] = true;
        ls_note(notes,
                "note: step %" PRId64 ": the loss of member %" PRId64
                " is %g, that member has diverged; the others "
                "train on\n",
                update, k, s->loss[k]);
    }
}
