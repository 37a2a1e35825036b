/* compiler/updates/trained_share.c -- see trained_share.h. The graph says what is updated, whatever
 * way that was made: by a node of its own, by one that computes the gradient too, or after an
 * exchange (LsGraph.updates). */
#include "compiler/updates/trained_share.h"

#include <inttypes.h>
#include <string.h>

#include "compiler/onnx/onnx_decisions.h"

LsTrainedShare ls_trained_share(const LsGraph *g)
{
    LsTrainedShare s = {0};
    const LsGraph *with = g->rank.updates != NULL ? g->rank.updates : g;
    const LsDecisions *d = g->source.decisions;
    for (uint32_t i = 1; i < with->nvalue; i++) {
        const LsValue *v = &with->value[i];
        if (v->kind == LS_V_PARAM && v->once_written) {
            s.tensors++;
            s.elements += ls_count(&v->shape);
        }
    }
    for (uint32_t k = 0; d != NULL && k < d->ntensor; k++)
        if (d->tensor[k].role == LS_ROLE_TRAINED || d->tensor[k].role == LS_ROLE_FROZEN) {
            s.of_tensors++;
            s.of_elements += ls_count(&d->tensor[k].shape);
        }
    return s;
}

/* 1234567 as 1,234,567. */
static const char *grouped(LsArena *a, int64_t n)
{
    return n < 1000 ? ls_arena_printf(a, "%" PRId64, n)
                    : ls_arena_printf(a, "%s,%03d", grouped(a, n / 1000), (int)(n % 1000));
}

const char *ls_trained_share_text(const LsGraph *g)
{
    const LsTrainedShare s = ls_trained_share(g);
    LsArena *a = g->arena;
    return ls_arena_printf(a, "trains %s of %s tensor%s, %s of %s elements", grouped(a, s.tensors),
                           grouped(a, s.of_tensors), s.of_tensors == 1 ? "" : "s",
                           grouped(a, s.elements), grouped(a, s.of_elements));
}
