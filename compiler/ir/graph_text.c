/* compiler/ir/graph_text.c -- prints the graph as text, for people and tests. */
#include "compiler/ir/graph_text.h"

#include <inttypes.h>

#include "compiler/ir/graph.h"
#include "compiler/ir/optimizer.h"

static const char *const type_name[LS_NTYPES] = {"real", "i64", "i32", "bool", "bf16", "f16", "u8"};
static const char *const phase_name[] = {"forward", "backward", "update"};

static void print_value(const LsGraph *g, LsValueId v, FILE *to)
{
    if (!ls_is(v))
        fprintf(to, " -");
    else if (ls_is_const(g, v) && ls_count(ls_shape(g, v)) == 1)
        fprintf(to, " %g", ls_const_at(g, v, 0));
    else
        fprintf(to, " %s", g->value[v.i].name);
}

/* Prints settings of a loss or an update that its operands do not show: "(smoothing 0.1)". */
static void print_settings(const LsNode *n, FILE *to)
{
    bool scores = n->op == LS_OP_XENT || n->op == LS_OP_XENT_GRAD;
    bool updates = ls_rule_of((LsOpCode)n->op) != NULL;
    if (scores && n->attr.loss.smoothing != 0)
        fprintf(to, "(smoothing %g)", n->attr.loss.smoothing);
    if (updates && n->attr.update.clip != 0)
        fprintf(to, "(clip %g)", n->attr.update.clip);
    if (updates && n->attr.update.skips)
        fprintf(to, "(skips)");
    if (n->op == LS_OP_RUNNING_STAT)
        fprintf(to, "(weight %g)", n->attr.update.sum.scale);
}

void ls_graph_print(const LsGraph *g, FILE *to)
{
    for (uint32_t i = 1; i < g->nnode; i++) {
        const LsNode *n = &g->node[i];
        LsNodeId id = {i};
        if (n->op == LS_OP_NOP)
            continue;
        fprintf(to, "%5u %-8s ", i, phase_name[n->phase]);
        for (int k = 0; k < n->nout; k++)
            fprintf(to, "%s%s", k > 0 ? ", " : "", g->value[ls_out(g, id, k).i].name);
        fprintf(to, "%s%s", n->nout > 0 ? " = " : "", ls_op[n->op]->name);
        print_settings(n, to);
        for (int k = 0; k < n->nin; k++)
            print_value(g, ls_in(g, id, k), to);
        for (int k = 0; k < n->nout; k++) {
            const LsValue *v = &g->value[ls_out(g, id, k).i];
            fprintf(to, "%s%s%s %s", k > 0 ? ", " : " : ", type_name[v->type],
                    v->layout == LS_LAST ? " last" : "", ls_shape_text(g->arena, &v->shape));
        }
        fprintf(to, "    # %s\n", n->name != NULL ? n->name : "");
    }
}
