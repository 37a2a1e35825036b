/* runtime/watch/grad_norm.c -- see grad_norm.h. A step's gradients are read as they are made, one
 * element after the other, in doubles: so the norm depends on no number of threads. */
#include "runtime/watch/grad_norm.h"

#include "runtime/base/element.h"
#include "runtime/base/tensor_copy.h"

#include <math.h>
#include <string.h>

static double squares_of(const LsWatch *w, const char *from, int real_bytes)
{
    const int64_t n = ls_tensor_count(&w->t), each = ls_data_bytes(w->t.type, real_bytes);
    const int64_t row = w->row > 0 ? w->t.dim[w->t.rank - 1] : n;
    double sum = 0;
    for (int64_t i = 0, k = 0; i < n; i += row, k++) {
        const char *at = from + k * w->row * each;
        if (w->t.type == LS_DT_REAL && real_bytes == 4) {
            for (int64_t j = 0; j < row; j++) {
                float v;
                memcpy(&v, at + 4 * j, 4);
                sum += (double)v * (double)v;
            }
        } else {
            for (int64_t j = 0; j < row; j++) {
                const double v = ls_element_at(w->t.type, at + j * each, real_bytes);
                sum += v * v;
            }
        }
    }
    return sum;
}

static void look(LsGradNorm *n, uint32_t step, bool before)
{
    const int bytes = n->g->p->real_bytes;
    for (uint32_t k = 0; k < n->t->nwatch; k++) {
        const LsWatch *w = &n->t->watch[k];
        if (w->step != step || w->before != before || strncmp(w->key, "grad/", 5) != 0)
            continue;
        const void *at = ls_engine_view(n->g, w->t.at, ls_watch_bytes(w, bytes));
        if (at != NULL)
            n->squares += squares_of(w, at, bytes);
    }
}

static void before(void *self, uint32_t step) { look(self, step, true); }
static void after(void *self, uint32_t step) { look(self, step, false); }

LsHook ls_grad_norm_hook(LsGradNorm *n, const LsEngine *g, const LsPhaseTable *t)
{
    *n = (LsGradNorm){.g = g, .t = t};
    return (LsHook){before, after, n, NULL};
}

double ls_grad_norm(const LsGradNorm *n) { return sqrt(n->squares); }

bool ls_grad_norm_fits(const LsProgram *p, LsError *e)
{
    const bool parts = ls_micro_batches(&p->division) * ls_update_batches(&p->division) > 1;
    const char *why = ls_is_private(p)          ? "gradients of private training are clipped sums"
                      : p->ensemble.members > 0 ? "each member of an ensemble has its own gradients"
                      : p->pipeline.nstage > 0  ? "no stage of a pipeline sees all gradients"
                      : p->ranks != NULL        ? "no rank sees the gradients of all"
                      : parts ? "an update adds up the gradients of several micro-batches or "
                                "batches, and no step has the sums of all"
                      : p->napplied > 0
                          ? "some gradients are applied as they are computed; compile with "
                            "--store-gradients to have them"
                          : NULL;
    return why == NULL || ls_fail(e, LS_EXIT_USAGE, "--log-grad-norm: %s", why);
}
