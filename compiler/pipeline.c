/* compiler/pipeline.c -- the order of the passes. */
#include "compiler/pipeline.h"

#include "compiler/cost/roofline.h"
#include "compiler/ir/graph_text.h"
#include "compiler/onnx/onnx_import.h"
#include "compiler/per_sample/batch_mixing.h"
#include "compiler/passes/channels_last.h"
#include "compiler/passes/drop_bias.h"
#include "compiler/per_sample/per_sample.h"
#include "compiler/patterns/patterns.h"

#include <inttypes.h>
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

static bool no_parts(LsCtx *cx, const LsPipelineOptions *o)
{
    return ls_error(cx, LS_NOWHERE, LS_E_OPTION, "leave --microbatches out",
                    "--microbatches %" PRId64 ": the first axis of "
                    "the inputs holds no samples, so a batch has no parts",
                    o->import.parts);
}

static bool mixing(LsCtx *cx, LsGraph *g, const LsPipelineOptions *o)
{
    const LsMixingOptions how = {g->training ? o->import.parts : 1, o->optimizer.accumulate,
                                 o->import.own_parts, ls_wants_samples(&o->grads)};
    return ls_batch_mixing(cx, g, &how);
}

static bool loss(LsCtx *cx, LsGraph *g, const LsPipelineOptions *o)
{
    const int64_t batch = g->batch, parts = g->training ? o->import.parts : 1;
    return ls_loss(cx, g, &o->loss) && (parts < 2 || g->batch == batch || no_parts(cx, o))
        && ls_part_randomness(cx, g, parts) && mixing(cx, g, o);
}

static bool segments(LsCtx *cx, LsGraph *g, const LsPipelineOptions *o)
{
    return ls_segments(cx, g, o->segments);
}

static bool chunks(LsCtx *cx, LsGraph *g, const LsPipelineOptions *o)
{
    return ls_head_chunks(cx, g, &o->head);
}

static bool biases(LsCtx *cx, LsGraph *g, const LsPipelineOptions *o)
{
    return !o->drop_bias || ls_drop_bias(cx, g, &o->optimizer);
}

/* On the built-in machine, so that a program's bits do not depend on the one that it is made on. */
static double price(const void *cpu, const LsGraph *g, LsNodeId n)
{
    return ls_node_cost(g, n, cpu);
}

static bool autodiff(LsCtx *cx, LsGraph *g, const LsPipelineOptions *o)
{
    LsSampleGrads grads = o->grads;
    LsMachine cpu;
    if (ls_machine_find(&cpu, "cpu"))
        grads.price = (LsNodePrice){price, &cpu};
    if (grads.privacy.expected == 0)
        grads.privacy.expected =
            (double)g->batch * (o->optimizer.accumulate > 1 ? o->optimizer.accumulate : 1);
    if (ls_wants_samples(&grads) && !ls_sample_randomness(cx, g, grads.randomness))
        return false;
    ls_loss_scale(cx, g, &o->optimizer.scale);
    return ls_autodiff_samples(cx, g, &grads);
}

static bool optimizer(LsCtx *cx, LsGraph *g, const LsPipelineOptions *o)
{
    return ls_optimizer(cx, g, &o->optimizer);
}

static bool unpack(LsCtx *cx, LsGraph *g, const LsPipelineOptions *o)
{
    return ls_unpack_weights(cx, g, o->import.npack > 0);
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
    {"segments", false, segments}, {"chunks", false, chunks},
    {"biases", true, biases},
    {"autodiff", true, autodiff},  {"optimizer", true, optimizer}, {"unpack", false, unpack},
    {"dce", false, dce},
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

/* Whether a batch has parts where each of them is one sample, so that the graph of a part cannot
 * tell: in the graph of larger parts. */
static bool has_parts(LsCtx *cx, const char *path, const LsPipelineOptions *o, const LsGraph *part)
{
    LsImportOptions larger = o->import;
    LsCtx quiet = *cx;          /* the graph of a part gives the warnings */
    int64_t factor = 2;
    if (larger.parts < 2 || part->batch > 1 || !part->training)
        return true;
    while (larger.parts % factor != 0)
        factor++;
    larger.parts /= factor;
    larger.weightless = true;
    quiet.log = fopen("/dev/null", "w");
    LsGraph *g = quiet.log != NULL ? ls_onnx_import(&quiet, path, &larger) : NULL;
    const int64_t batch = g != NULL ? g->batch : 0;
    const bool known = g != NULL && ls_patterns(&quiet, g) && ls_loss(&quiet, g, &o->loss),
               samples = known && g->batch == batch;
    if (quiet.log != NULL)
        fclose(quiet.log);
    return !known || (samples ? mixing(cx, g, o) : no_parts(cx, o));
}

/* The passes that the graph of updates needs, too. Its sources have the layouts of the graph of the
 * parts. */
static bool run_on_updates(LsCtx *cx, LsGraph *g, const LsPipelineOptions *o)
{
    static bool (*const run[])(LsCtx *, LsGraph *, const LsPipelineOptions *) = {layout, precision,
                                                                                 fuse, split};
    LsPipelineOptions like = *o;
    like.like = g;
    for (size_t k = 0; g->rank.updates != NULL && k < sizeof run / sizeof *run; k++)
        if (!run[k](cx, g->rank.updates, &like) || !after(cx, g->rank.updates, "updates", o))
            return false;
    return true;
}

LsGraph *ls_pipeline(LsCtx *cx, const char *path, const LsPipelineOptions *o)
{
    LsGraph *g = ls_onnx_import(cx, path, &o->import);
    if (g == NULL || !after(cx, g, "import", o) || !has_parts(cx, path, o, g))
        return NULL;
    for (size_t k = 0; k < sizeof stage / sizeof *stage; k++) {
        if (stage[k].training_only && !g->training)
            continue;
        if (!stage[k].run(cx, g, o) || !after(cx, g, stage[k].name, o))
            return NULL;
    }
    return run_on_updates(cx, g, o) ? g : NULL;
}
