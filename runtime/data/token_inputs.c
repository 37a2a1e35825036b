/* runtime/data/token_inputs.c -- see the header. */
#include "runtime/data/token_inputs.h"

#include "runtime/base/tensor_copy.h"
#include "runtime/data/label_input.h"

#include <string.h>

LsRowPart ls_token_part(const LsDataset *d, uint32_t k)
{
    const LsInput *in = &d->p->input[k];
    const bool fits = in->t.type != LS_DT_REAL && !d->source[k].path && !d->source[k].whole;
    return !fits                                       ? LS_ROW_TOKEN
           : d->p->segments == k + 1                   ? LS_ROW_SEGMENT
           : strcmp(in->t.name, "attention_mask") == 0 ? LS_ROW_SEEN
           : strcmp(in->t.name, "position_ids") == 0   ? LS_ROW_PLACE
                                                       : LS_ROW_TOKEN;
}

bool ls_token_inputs(const LsDataset *d, LsTokenInputs *to)
{
    const LsProgram *p = d->p;
    *to = (LsTokenInputs){.ids = p->ninput, .label = ls_label_input(p)};
    for (uint32_t k = p->ninput; k-- > 0;)
        if (!p->input[k].is_label && ls_token_part(d, k) == LS_ROW_TOKEN)
            to->ids = k;
    if (to->ids == p->ninput || to->label == p->ninput)
        return false;
    const LsInput *x = &p->input[to->ids], *y = &p->input[to->label];
    to->tokens = d->source[to->ids].per_sample;
    return x->t.type != LS_DT_REAL && x->t.type != LS_DT_BOOL && y->t.type != LS_DT_REAL
           && d->source[to->label].per_sample == to->tokens && !d->source[to->ids].whole
           && !d->source[to->ids].path && !d->source[to->label].path;
}

int64_t ls_tokens_of_sample(const LsProgram *p)
{
    const uint32_t label = ls_label_input(p);
    if (label == p->ninput || p->ninput == 0)
        return 0;
    const LsTensor *x = &p->input[0].t, *y = &p->input[label].t;
    const bool tokens = x->rank >= 2 && x->type != LS_DT_REAL && x->type != LS_DT_BOOL
                        && y->type != LS_DT_REAL && ls_tensor_count(x) == ls_tensor_count(y)
                        && x->dim[0] % p->division.samples == 0;
    return tokens ? ls_tensor_count(x) / (x->members > 0 ? x->members : 1) / p->division.samples
                  : 0;
}
