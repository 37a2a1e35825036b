/* compiler/cost.c -- operations and bytes of a node, and the larger of the times they take. */
#include "compiler/cost.h"

#include "compiler/fuse.h"

#include <string.h>

/* Measured with the generated kernels (products at 250 per core and ns, streams at 40 B per ns). */
const LsMachine ls_machine_cpu = {
    .product_per_ns = 400, .flops_per_ns = 40, .bytes_per_ns = 40, .launch_ns = 2000};

/* Operators of a scalar expression; a call of a transcendental function counts as ten. */
static double expr_flops(const char *expr)
{
    static const char *const slow[] = {"ls_exp", "ls_log",     "ls_tanh",     "ls_erf",
                                       "ls_pow", "ls_sigmoid", "ls_softplus", "ls_uniform"};
    double flops = 0;
    for (const char *c = expr; *c != '\0'; c++) {
        flops += strchr("+-*/<>?", *c) != NULL;
        for (size_t k = 0; k < sizeof slow / sizeof *slow; k++)
            flops += strncmp(c, slow[k], strlen(slow[k])) == 0 ? 10 : 0;
    }
    return flops > 1 ? flops : 1;
}

static double pointwise_flops(const LsGraph *g, LsNodeId n)
{
    const LsNode *node = &g->node[n.i];
    LsShape space = *ls_shape(g, ls_out(g, n, 0));
    for (int k = 0; k < node->nin; k++)
        ls_shape_broadcast(&space, ls_in_shape(g, n, k));
    return (double)ls_count(&space) * expr_flops(ls_op[node->op]->expr);
}

double ls_node_flops(const LsGraph *g, LsNodeId n)
{
    const LsNode *node = &g->node[n.i];
    const LsOp *row = ls_op[node->op];
    double flops = 0;
    if (row->kernel == LS_K_FUSED) {
        const LsFused *body = node->attr.fused.body;
        for (int k = 0; k < body->nstmt; k++)
            flops += expr_flops(ls_op[body->stmt[k].op]->expr);
        return flops * (double)ls_count(&body->space);
    }
    if (row->kernel == LS_K_MAP || row->kernel == LS_K_REDUCE)
        return pointwise_flops(g, n);
    if (row->flops != NULL)
        return row->flops(g, n);
    for (int k = 0; k < node->nin; k++)
        if (ls_is(ls_in(g, n, k)) && (double)ls_count(ls_in_shape(g, n, k)) > flops)
            flops = (double)ls_count(ls_in_shape(g, n, k));
    return flops;
}

/* Slices and gathers read no more than they give. */
static bool reads_part(const LsOp *row)
{
    return row->kernel == LS_K_MOVE || row->kernel == LS_K_GATHER;
}

double ls_node_bytes(const LsGraph *g, LsNodeId n, int real_bytes)
{
    const LsNode *node = &g->node[n.i];
    const LsOp *row = ls_op[node->op];
    double made = 0, sum = 0;
    for (int k = 0; k < node->nout; k++)
        made += (double)ls_value_bytes(g, ls_out(g, n, k), real_bytes);
    for (int k = 0; k < node->nin; k++) {
        if (!ls_is(ls_in(g, n, k)))
            continue;
        double bytes = (double)ls_value_bytes(g, ls_in(g, n, k), real_bytes);
        if (reads_part(row) && node->nout > 0 && bytes > made)
            bytes = made;
        sum += k < 8 && row->writes >> k & 1 ? 2 * bytes : bytes;
    }
    return sum + made;
}

double ls_node_cost(const LsGraph *g, LsNodeId n, const LsMachine *m)
{
    LsKernelId kernel = ls_op[g->node[n.i].op]->kernel;
    if (kernel == LS_K_VIEW || kernel == LS_K_NONE)
        return 0;
    bool product = kernel == LS_K_MATMUL || kernel == LS_K_CONV;
    double compute = ls_node_flops(g, n) / (product ? m->product_per_ns : m->flops_per_ns);
    double move = ls_node_bytes(g, n, 4) / m->bytes_per_ns;
    return m->launch_ns + (compute > move ? compute : move);
}
