/* codegen/planning/plan_problem.c -- LsGraph to LsDag: sizes from shapes, costs from the roofline,
 * workspace from the kernels' emitters. */
#include "codegen/planning/plan_problem.h"

#include "codegen/emit/kernel_emit.h"
#include "codegen/fusion/fused_alternatives.h"
#include "compiler/ir/precision.h"
#include "compiler/passes/fuse.h"

static bool runs(const LsGraph *g, uint32_t n)
{
    return g->node[n].op != LS_OP_NOP && ls_op[g->node[n].op]->kernel != LS_K_VIEW;
}

/* The value that v is a view of, or v. */
static LsValueId root(const LsGraph *g, LsValueId v)
{
    while (g->value[v.i].def.i != 0 && !runs(g, g->value[v.i].def.i))
        v = ls_in(g, g->value[v.i].def, 0);
    return v;
}

LsValueId ls_problem_home(const LsGraph *g, LsValueId v)
{
    const LsNodeId n = g->value[v.i].def;
    const bool stays = g->node[n.i].op == LS_OP_ACCUMULATE && g->node[n.i].attr.update.stays;
    return stays ? ls_in(g, n, 1) : (LsValueId){0};
}

static bool has_own_name(const LsValue *v) { return v->name != NULL && v->name[0] != '%'; }

/* By value that is no view: the name that a file gives it, or a view of it; NULL: none. */
static const char **file_names(LsCtx *cx, const LsGraph *g)
{
    const char **name = ls_arena_alloc(cx->arena, g->nvalue, sizeof *name);
    for (uint32_t i = 1; i < g->nvalue; i++) {
        const uint32_t of = root(g, (LsValueId){i}).i;
        if (name[of] == NULL && has_own_name(&g->value[i]))
            name[of] = g->value[i].name;
    }
    return name;
}

/* What a value is before people: its name in the file, the gradient of a parameter, or else the
 * node that makes it, by its name in the file; and its shape. */
static const char *label_of(LsCtx *cx, const LsGraph *g, LsValueId v, const char *name)
{
    static const char *const of[] = {"", "backward of ", "update of "};
    const LsValue *x = &g->value[v.i];
    const LsNode *n = &g->node[x->def.i];
    const char *shape = ls_shape_text(cx->arena, &x->shape);
    if (name != NULL || x->def.i == 0 || n->name == NULL)
        return ls_arena_printf(cx->arena, "%s [%s]", name != NULL ? name : x->name, shape);
    return v.i == n->out
               ? ls_arena_printf(cx->arena, "%s%s [%s]", of[n->phase], n->name, shape)
               : ls_arena_printf(cx->arena, "%s%s, result %u [%s]", of[n->phase], n->name,
                                 v.i - n->out + 1, shape);
}

static void add_tensors(LsCtx *cx, LsProblem *p)
{
    const LsGraph *g = p->g;
    LsDag *d = &p->dag;
    d->tensor = ls_arena_alloc(cx->arena, g->nvalue, sizeof *d->tensor);
    p->value_of = ls_arena_alloc(cx->arena, g->nvalue, sizeof *p->value_of);
    p->tensor_of = ls_arena_alloc(cx->arena, g->nvalue, sizeof *p->tensor_of);
    const char **type = ls_arena_alloc(cx->arena, g->nvalue, sizeof *type);
    p->tensor_of[0] = -1;
    for (uint32_t i = 1; i < g->nvalue; i++) {
        LsValueId v = {i};
        p->tensor_of[i] = -1;
        if (root(g, v).i != i)
            continue;
        p->value_of[d->ntensor] = v;
        type[d->ntensor] = ls_is_16(ls_type(g, v)) ? ls_precision_name(ls_type(g, v)) : NULL;
        p->tensor_of[i] = d->ntensor;
        d->tensor[d->ntensor++] = (LsDagTensor){
            .name = g->value[i].name,
            .bytes = ls_is(ls_problem_home(g, v)) ? 0 : ls_value_bytes(g, v, p->target.real_bytes),
            .persistent = g->value[i].def.i == 0};
    }
    const char **label = ls_arena_alloc(cx->arena, d->ntensor + 1u, sizeof *label),
               **name = file_names(cx, g);
    for (uint32_t k = 0; k < g->ngrad; k++)
        if (g->grad[k].kind == LS_GRAD)
            name[root(g, g->grad[k].grad).i] = ls_arena_printf(
                cx->arena, "gradient of %s", g->value[g->grad[k].param.i].name);
    for (uint32_t t = 0; t < d->ntensor; t++)
        label[t] = label_of(cx, g, p->value_of[t], name[p->value_of[t].i]);
    d->label = label;
    d->type = type;
    d->ntype = d->ntensor;
    for (uint32_t i = 1; i < g->nvalue; i++)
        p->tensor_of[i] = p->tensor_of[root(g, (LsValueId){i}).i];
    /* read after the phase */
    const LsValueId last[] = {g->objective.loss, g->objective.weight};
    for (int k = 0; k < 2; k++) {
        LsDagTensor *t = p->tensor_of[last[k].i] < 0 ? NULL : &d->tensor[p->tensor_of[last[k].i]];
        if (t != NULL && !t->persistent)
            t->output = true;
    }
}

static uint32_t add_id(uint32_t *list, uint32_t n, int64_t id)
{
    for (uint32_t k = 0; k < n; k++)
        if (list[k] == (uint32_t)id)
            return n;
    list[n] = (uint32_t)id;
    return n + 1;
}

/* Whether the kernel reads the tensor through one operand, as in-place needs: a second operand
 * might be a view with the elements in other places. */
static bool read_once(const LsProblem *p, LsNodeId n, int64_t t)
{
    int reads = 0;
    for (int k = 0; k < p->g->node[n.i].nin; k++)
        reads += p->tensor_of[ls_in(p->g, n, k).i] == t;
    return reads == 1;
}

static void add_edges(LsCtx *cx, const LsProblem *p, LsNodeId n, LsDagNode *d)
{
    const LsGraph *g = p->g;
    const LsNode *node = &g->node[n.i];
    uint32_t *in = ls_arena_alloc(cx->arena, node->nin, sizeof *in);
    uint32_t *out = ls_arena_alloc(cx->arena, node->nout, sizeof *out);
    uint32_t *upd = ls_arena_alloc(cx->arena, node->nin, sizeof *upd);
    LsDagPair *pair = ls_arena_alloc(cx->arena, (size_t)node->nin * node->nout, sizeof *pair);
    for (int k = 0; k < node->nin; k++) {
        int64_t t = p->tensor_of[ls_in(g, n, k).i];
        if (t < 0 || !ls_is_read(node, k))
            continue;
        d->nin = add_id(in, d->nin, t);
        if (ls_writes(node, k))
            d->nupd = add_id(upd, d->nupd, t);
    }
    for (int o = 0; o < node->nout; o++) {
        out[d->nout++] = (uint32_t)p->tensor_of[ls_out(g, n, o).i];
        for (int k = 0; k < node->nin; k++) {
            int64_t t = p->tensor_of[ls_in(g, n, k).i];
            if (t >= 0 && !p->dag.tensor[t].persistent && read_once(p, n, t)
                && ls_kernel_inplace(g, n, o, k))
                pair[d->ninplace++] = (LsDagPair){out[o], (uint32_t)t};
        }
    }
    d->in = in, d->out = out, d->upd = upd, d->inplace = pair;
}

/* Outputs and gradients are made even if no node reads them. A gradient that an update reads is
 * made for the update, by its node or by an alternative. */
static void mark_required(LsCtx *cx, const LsProblem *p, const int64_t *dag_of)
{
    const LsGraph *g = p->g;
    bool *updates = ls_arena_alloc(cx->arena, g->nvalue, sizeof *updates);
    for (uint32_t i = 1; i < g->nnode; i++)
        for (int k = 0; ls_op[g->node[i].op]->kernel == LS_K_UPDATE && k < g->node[i].nin; k++)
            updates[root(g, ls_in(g, (LsNodeId){i}, k)).i] = true;
    for (uint32_t i = 0; i < g->noutput + g->ngrad; i++) {
        LsValueId v = root(g, i < g->noutput ? g->output[i] : g->grad[i - g->noutput].grad);
        uint32_t def = g->value[v.i].def.i;
        if (def != 0 && !updates[v.i])
            p->dag.node[dag_of[def]].required = true;
    }
}

LsWork ls_problem_work(const LsProblem *p, uint32_t node, const LsMachine *m)
{
    LsNodeId n = p->node_of[node];
    const LsEmitter *e = ls_emitter_of(p->target.kind, ls_op[p->g->node[n.i].op]->kernel);
    LsCostWay way = e != NULL && e->way != NULL ? e->way(p->g, n, &p->target) : LS_WAY_DIRECT;
    return ls_node_work(p->g, n, m, way, p->target.real_bytes);
}

/* Convolutions, products and attention multiply at the speed of TF32 if they may round to it, and
 * of 16 bits on a GPU if their operands are stored so; attention then has TF32's instructions all
 * the same. (Heads too deep for attention's kernels on tensor cores cost more than this:
 * docs/lab/cuda-kernels.md.) */
static LsPeak peak_of(const LsProblem *p, uint32_t node)
{
    const LsNodeId n = p->node_of[node];
    const LsKernelId k = ls_op[p->g->node[n.i].op]->kernel;
    const bool product = k == LS_K_CONV || k == LS_K_MATMUL || k == LS_K_ATTENTION;
    const bool half =
        product && p->target.kind == LS_TARGET_CUDA && ls_is_16(ls_type(p->g, ls_in(p->g, n, 0)));
    if (half && k != LS_K_ATTENTION)
        return ls_type(p->g, ls_in(p->g, n, 0)) == LS_BF16 ? LS_PEAK_BF16 : LS_PEAK_F16;
    return product && (half || p->target.tf32) ? LS_PEAK_TF32 : LS_PEAK_F32;
}

void ls_problem_price(LsProblem *p, const LsMachine *m)
{
    for (uint32_t i = 0; i < p->dag.nnode; i++) {
        const LsMachine as = ls_machine_with_peak(m, peak_of(p, i));
        LsWork w = ls_problem_work(p, i, &as);
        p->dag.node[i].cost = ls_work_ns(&as, &w, p->target.real_bytes);
    }
}

LsProblem *ls_problem_new(LsCtx *cx, const LsGraph *g, const char *name,
                          const LsTarget *target)
{
    static const LsDagKind kind[] = {LS_DAG_FORWARD, LS_DAG_BACKWARD, LS_DAG_OPTIMIZER};
    LsProblem *p = ls_arena_alloc(cx->arena, 1, sizeof *p);
    LsDag *d = &p->dag;
    p->g = g;
    p->target = *target;
    d->name = name;
    d->alignment = LS_ALIGNMENT;
    d->node = ls_arena_alloc(cx->arena, g->nnode, sizeof *d->node);
    p->node_of = ls_arena_alloc(cx->arena, g->nnode, sizeof *p->node_of);
    uint32_t *pass = ls_arena_alloc(cx->arena, g->nnode, sizeof *pass);
    int64_t *dag_of = ls_arena_alloc(cx->arena, g->nnode, sizeof *dag_of);
    dag_of[0] = -1;
    add_tensors(cx, p);
    for (uint32_t i = 1; i < g->nnode; i++) {
        const LsNode *node = &g->node[i];
        const LsEmitter *e = ls_emitter_of(p->target.kind, ls_op[node->op]->kernel);
        dag_of[i] = -1;
        if (!runs(g, i))
            continue;
        pass[d->nnode] = node->pass;
        if (node->tile != NULL)
            d->pass = pass;
        dag_of[i] = d->nnode;
        p->node_of[d->nnode] = (LsNodeId){i};
        LsDagNode *row = &d->node[d->nnode++];
        *row = (LsDagNode){.name = node->name != NULL ? node->name : "",
                           .op = ls_op[node->op]->name,
                           .kind = kind[node->phase], .once = ls_op[node->op]->once,
                           .alternative = ls_is_alternative(g, (LsNodeId){i}),
                           .of = node->phase == LS_FORWARD ? -1 : dag_of[node->fwd.i]};
        row->workspace = e != NULL && e->workspace != NULL
            ? e->workspace(g, (LsNodeId){i}, target) : 0;
        add_edges(cx, p, (LsNodeId){i}, row);
    }
    mark_required(cx, p, dag_of);
    LsMachine cpu;
    if (ls_machine_find(&cpu, "cpu"))
        ls_problem_price(p, &cpu);
    return p;
}
