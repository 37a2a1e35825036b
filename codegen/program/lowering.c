/* codegen/program/lowering.c -- the order of the passes after the compiler's. */
#include "codegen/program/lowering.h"

#include "codegen/cuda/conv_fuse.h"
#include "codegen/cuda/epilogue.h"
#include "codegen/cuda/moments.h"
#include "codegen/cuda/updates.h"
#include "codegen/cuda/pad_classes.h"
#include "codegen/fusion/fused_alternatives.h"
#include "codegen/fusion/gradient_in_update.h"
#include "codegen/fusion/head_in_update.h"
#include "codegen/fusion/implicit_concat.h"
#include "codegen/fusion/implicit_pad.h"
#include "codegen/fusion/read_codes.h"
#include "codegen/fusion/add_alternative.h"

typedef struct Stage {
    bool training_only;
    void (*run)(LsCtx *, LsGraph **, const LsLowering *);   /* changes the graph or replaces it */
} Stage;

static void read_codes(LsCtx *cx, LsGraph **g, const LsLowering *l)
{
    ls_read_codes(cx, *g, l->target);
}

static void epilogues(LsCtx *cx, LsGraph **g, const LsLowering *l)
{
    if (l->target->kind == LS_TARGET_CUDA && !l->no_epilogues)
        ls_cuda_epilogues(cx, *g);
}

static void moments(LsCtx *cx, LsGraph **g, const LsLowering *l)
{
    ls_join_moments(cx, *g, l->target);
}

static void updates(LsCtx *cx, LsGraph **g, const LsLowering *l)
{
    ls_join_updates(cx, *g, l->target);
}

static void gradients_in_updates(LsCtx *cx, LsGraph **g, const LsLowering *l)
{
    if (!l->store_gradients)
        ls_apply_products(cx, *g, l->target, l->made, l->nmade);
}

static void fuse_relus(LsCtx *cx, LsGraph **g, const LsLowering *l)
{
    (void)cx;
    ls_conv_fuse(*g, l->target);
}

static void fuse_relu_gradients(LsCtx *cx, LsGraph **g, const LsLowering *l)
{
    uint32_t n = ls_conv_fuse_gradients(cx, *g, l->target);
    if (n == 0 && l->compiled_engines && l->target->kind == LS_TARGET_CUDA)
        ls_warn(cx, LS_NOWHERE, "cuDNN lists compiled engines only if the loader finds "
                "libcuda.so.1", "--compiled-engines changes nothing: no engine does a convolution "
                "together with a ReLU's gradient");
}

static void other_ways(LsCtx *cx, LsGraph **g, const LsLowering *l)
{
    ls_other_ways(cx, *g, l->target);
}

static void alternatives(LsCtx *cx, LsGraph **g, const LsLowering *l)
{
    if (!l->no_alternatives)
        *g = ls_alternatives(cx, *g, l->target);
}

/* Lets kernels read concatenated and padded values at their source. */
static void read_directly(LsCtx *cx, LsGraph **g, const LsLowering *l)
{
    ls_join_operands(cx, *g, l->target, l->made, l->nmade);
    ls_inset_operands(cx, *g, l->target, l->made, l->nmade);
}

static void widen(LsCtx *cx, LsGraph **g, const LsLowering *l)
{
    (void)cx;
    ls_widen_scores(*g, l->target);
}

static const Stage stage[] = {
    {false, read_codes},
    {false, epilogues},           {true, moments},
    {true, updates},              {true, gradients_in_updates},
    {false, fuse_relus},          {true, fuse_relu_gradients},
    {true, other_ways},           {true, alternatives},
    {false, read_directly},       {true, widen},
};

/* The updates behind an exchange between ranks: what changes the kernels of updates in the graph of
 * one process. Updates of slices run one by one. */
static void lower_updates(LsCtx *cx, LsGraph *g, const LsLowering *l)
{
    epilogues(cx, &g, l);
    if (!g->rank.sliced)
        updates(cx, &g, l);
}

bool ls_lower(LsCtx *cx, LsLowering *l)
{
    if (l->train->rank.updates != NULL)
        lower_updates(cx, l->train->rank.updates, l);
    if (l->head_in_parts && !ls_head_in_update(cx, l->train, l->target, l->made, l->nmade))
        return false;
    l->tiled = ls_tile_samples(cx, l->train, l->target, &l->tiling);
    LsTiling of_eval = l->tiling;
    ls_tile_samples(cx, l->eval, l->target, &of_eval);
    for (size_t k = 0; k < sizeof stage / sizeof *stage; k++) {
        stage[k].run(cx, &l->train, l);
        if (!stage[k].training_only)
            stage[k].run(cx, &l->eval, l);
    }
    l->train_problem = ls_problem_new(cx, l->train, l->name, l->target);
    l->eval_problem = ls_problem_new(cx, l->eval, l->name, l->target);
    l->update_problem = l->train->rank.updates != NULL
                            ? ls_problem_new(cx, l->train->rank.updates, l->name, l->target)
                            : NULL;
    return cx->nerror == 0;
}
