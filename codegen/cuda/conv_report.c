/* codegen/cuda/conv_report.c */
#include "codegen/cuda/conv_report.h"

#include <inttypes.h>

static bool is_conv(const LsGraph *g, uint32_t n)
{
    return ls_op[g->node[n].op]->kernel == LS_K_CONV;
}

static void print_one(FILE *to, const LsNode *node, const LsConvChoice *c)
{
    static const char *const kind[] = {"forward", "data", "weights"};
    fprintf(to, "    %-40s %-8s", node->name != NULL ? node->name : "", kind[c->conv.kind]);
    if (c->own)
        fprintf(to, " a kernel of our own");
    else if (c->json != NULL)
        fprintf(to, " engine %d", c->engine);
    fprintf(to, ", workspace %" PRId64 " bytes%s%s%s%s\n", c->workspace,
            c->tensor_core ? ", tensor cores" : "", c->conv.bias ? ", with bias" : "",
            c->conv.relu ? " and ReLU" : "",
            !c->conv.mask ? "" : c->alone ? ", a ReLU's gradient by what is compiled at the start"
                                          : ", with a ReLU's gradient");
}

void ls_conv_report(FILE *to, LsConvPlanner *p, const LsGraph *g, int real_bytes, bool each)
{
    int64_t largest = 0, v = ls_conv_planner_version(p);
    uint32_t n = 0, own = 0, cores = 0, masks = 0;
    const char *why = NULL;
    for (uint32_t i = 1; i < g->nnode; i++) {
        if (!is_conv(g, i))
            continue;
        const LsConvChoice *c = ls_conv_choose(p, g, (LsNodeId){i}, real_bytes);
        if (each)
            print_one(to, &g->node[i], c);
        n++;
        own += c->own;
        cores += c->tensor_core;
        masks += c->conv.mask;
        why = c->own ? c->why : why;
        largest = c->workspace > largest ? c->workspace : largest;
    }
    if (n == 0)
        return;
    fprintf(to, "  %u convolutions, a workspace of at most %" PRId64 " bytes: ", n, largest);
    if (ls_conv_planner_estimates(p) != NULL)
        fprintf(to, "an estimate (%s)\n", ls_conv_planner_estimates(p));
    else
        fprintf(to,
                "plans of cuDNN %" PRId64 ".%" PRId64 ".%" PRId64 " for %s, %u of them on "
                "tensor cores\n",
                v / 10000, v / 100 % 100, v % 100, ls_conv_planner_wishes(p)->device, cores);
    if (masks > 0)
        fprintf(to, "  %u of them may do a ReLU's gradient in the same kernel\n", masks);
    if (own > 0)
        fprintf(to, "  %u of them by kernels of our own, which are slow: %s\n", own, why);
}
