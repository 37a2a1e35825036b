/* compiler/pipeline.c -- the order of the passes. */
#include "compiler/pipeline.h"

#include "compiler/ir/graph_text.h"
#include "compiler/onnx/onnx_import.h"
#include "compiler/passes/channels_last.h"
#include "compiler/passes/per_sample.h"
#include "compiler/patterns/patterns.h"

#include <string.h>

typedef struct Stage {
    const char *name;
    bool training_only;
    bool (*run)(LsCtx *, LsGraph *, const LsPipelineOptions *);
} Stage;

static bool patterns(LsCtx *cx, LsGraph *g, const LsPipelineOptions *o)
{
    (void)o;
    return ls_patterns(cx, g);
}

static bool heads(LsCtx *cx, LsGraph *g, const LsPipelineOptions *o)
{
    (void)o;
    return ls_heads(cx, g);
}

static bool loss(LsCtx *cx, LsGraph *g, const LsPipelineOptions *o)
{
    return ls_loss(cx, g, &o->loss);
}

static bool autodiff(LsCtx *cx, LsGraph *g, const LsPipelineOptions *o)
{
    LsSampleGrads grads = o->grads;
    if (grads.privacy.expected == 0)
        grads.privacy.expected = (double)g->batch * (o->optimizer.accumulate > 1 ? o->optimizer.accumulate : 1);
    if (ls_wants_samples(&grads) && !ls_sample_randomness(cx, g, grads.randomness))
        return false;
    ls_loss_scale(cx, g, &o->optimizer.scale);
    return ls_autodiff_samples(cx, g, &grads);
}

static bool optimizer(LsCtx *cx, LsGraph *g, const LsPipelineOptions *o)
{
    return ls_optimizer(cx, g, &o->optimizer);
}

static bool dce(LsCtx *cx, LsGraph *g, const LsPipelineOptions *o)
{
    (void)o;
    return ls_dce(cx, g);
}

static bool layout(LsCtx *cx, LsGraph *g, const LsPipelineOptions *o)
{
    return ls_layout(cx, g, o->like);
}

static bool residual(LsCtx *cx, LsGraph *g, const LsPipelineOptions *o)
{
    (void)o;
    return ls_residual(cx, g);
}

static bool precision(LsCtx *cx, LsGraph *g, const LsPipelineOptions *o)
{
    return ls_precision(cx, g, &o->precision);
}

static bool fuse(LsCtx *cx, LsGraph *g, const LsPipelineOptions *o)
{
    (void)o;
    return ls_fuse(cx, g);
}

static bool split(LsCtx *cx, LsGraph *g, const LsPipelineOptions *o)
{
    (void)o;
    return ls_split(cx, g);
}

static bool ensemble(LsCtx *cx, LsGraph *g, const LsPipelineOptions *o)
{
    return ls_ensemble(cx, g, &o->ensemble, o->like);
}

static const Stage stage[] = {
    {"patterns", false, patterns}, {"heads", false, heads},        {"loss", false, loss},
    {"autodiff", true, autodiff},  {"optimizer", true, optimizer}, {"dce", false, dce},
    {"layout", false, layout},     {"residual", true, residual},
    {"precision", false, precision},
    {"fuse", false, fuse},         {"split", false, split}, {"ensemble", false, ensemble},
};

const char *ls_pipeline_pass(size_t k)
{
    enum { NSTAGES = sizeof stage / sizeof *stage };
    return k == 0 ? "import" : k <= NSTAGES ? stage[k - 1].name : NULL;
}

static bool after(LsCtx *cx, const LsGraph *g, const char *pass, const LsPipelineOptions *o)
{
    if (o->dump != NULL && (strcmp(o->dump, pass) == 0 || strcmp(o->dump, "all") == 0)) {
        printf("# after %s\n", pass);
        ls_graph_print(g, stdout);
    }
    return ls_verify(cx, g);
}

LsGraph *ls_pipeline(LsCtx *cx, const char *path, const LsPipelineOptions *o)
{
    LsGraph *g = ls_onnx_import(cx, path, &o->import);
    if (g == NULL || !after(cx, g, "import", o))
        return NULL;
    for (size_t k = 0; k < sizeof stage / sizeof *stage; k++) {
        if (stage[k].training_only && !g->training)
            continue;
        if (!stage[k].run(cx, g, o) || !after(cx, g, stage[k].name, o))
            return NULL;
    }
    return g;
}
