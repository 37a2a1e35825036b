/* runtime/cuda/cudnn_pack.c -- see cudnn_pack.h. */
#include "runtime/cuda/cudnn_pack.h"

#include "runtime/cuda/cudnn_graph.h"

#include <stdlib.h>
#include <string.h>

enum { TENSORS = 5 };           /* x, w, y, bias, mask */

typedef struct LsDnnPack {
    void *at[TENSORS + 1];      /* the workspace last */
    LsDnnDesc desc;
} Pack;

static void addresses(const LsCudaConv *c, bool alone, void *const arg[], void *at[TENSORS + 1])
{
    const int place[TENSORS] = {c->arg_x, c->arg_w, c->arg_y, alone ? -1 : c->arg_bias,
                                alone ? -1 : c->arg_mask};
    for (int k = 0; k < TENSORS; k++)
        at[k] = place[k] >= 0 ? arg[place[k]] : NULL;
    uintptr_t room = c->arg_workspace >= 0 ? (uintptr_t)arg[c->arg_workspace] : 0;
    at[TENSORS] = (void *)((room + LS_CONV_ALIGNMENT - 1) / LS_CONV_ALIGNMENT * LS_CONV_ALIGNMENT);
}

static LsDnnDesc make(const LsDnn *lib, void *const at[TENSORS + 1], LsError *e)
{
    static const int64_t uid[TENSORS] = {LS_DNN_X, LS_DNN_W, LS_DNN_Y, LS_DNN_B, LS_DNN_MASK};
    LsDnnScope s = {.lib = lib};
    int64_t name[TENSORS];
    void *place[TENSORS];
    int n = 0;
    for (int k = 0; k < TENSORS; k++)
        if (at[k] != NULL) {
            name[n] = uid[k];
            place[n++] = at[k];
        }
    LsDnnDesc d = ls_dnn_make(&s, LS_DNN_VARIANT_PACK);
    ls_dnn_set(&s, d, LS_DNN_PACK_UIDS, LS_DNN_T_INT64, n, name);
    ls_dnn_set(&s, d, LS_DNN_PACK_POINTERS, LS_DNN_T_POINTER, n, place);
    ls_dnn_set(&s, d, LS_DNN_PACK_WORKSPACE, LS_DNN_T_POINTER, 1, &at[TENSORS]);
    ls_dnn_finalize(&s, d, "addresses");
    if (s.failed) {
        ls_fail(e, LS_EXIT_DEVICE, "cuDNN: %s", s.err);
        d = NULL;
    } else {
        s.ndesc = 0;            /* now owned by the caller */
    }
    ls_dnn_scope_drop(&s);
    return d;
}

LsDnnDesc ls_dnn_pack(LsDnnPacks *p, const LsDnn *lib, const LsCudaConv *c, bool alone,
                      void *const arg[], LsError *e)
{
    void *at[TENSORS + 1];
    addresses(c, alone, arg, at);
    for (int k = 0; k < p->n; k++)
        if (memcmp(p->pack[k].at, at, sizeof at) == 0)
            return p->pack[k].desc;
    if (p->n == p->cap) {
        int cap = p->cap > 0 ? 2 * p->cap : 4;
        Pack *more = realloc(p->pack, (size_t)cap * sizeof *more);
        if (more == NULL) {
            ls_fail(e, LS_EXIT_FAIL, "out of memory");
            return NULL;
        }
        p->pack = more;
        p->cap = cap;
    }
    Pack *pack = &p->pack[p->n];
    memcpy(pack->at, at, sizeof at);
    pack->desc = make(lib, at, e);
    p->n += pack->desc != NULL;
    return pack->desc;
}

void ls_dnn_packs_drop(LsDnnPacks *p, const LsDnn *lib)
{
    while (p->n > 0)
        ls_dnn_drop(lib, p->pack[--p->n].desc);
    free(p->pack);
    *p = (LsDnnPacks){0};
}
