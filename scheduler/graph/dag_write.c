/* scheduler/graph/dag_write.c -- writes "lowerset-graph" version 1, one tensor or node a line. */
#include <inttypes.h>

#include "base/json_text.h"
#include "scheduler/graph/dag_read.h"

static void put_ids(FILE *to, const char *key, const uint32_t *id, uint32_t n)
{
    if (n == 0)
        return;
    fprintf(to, ", \"%s\": [", key);
    for (uint32_t k = 0; k < n; k++)
        fprintf(to, "%s%" PRIu32, k ? ", " : "", id[k]);
    fprintf(to, "]");
}

static void put_node(FILE *to, const LsDag *g, uint32_t i)
{
    const LsDagNode *n = &g->node[i];
    static const char *const kind[] = {"forward", "backward", "optimizer"};
    fprintf(to, " {\"id\": %" PRIu32 ", \"name\": ", i);
    ls_json_text(to, n->name);
    fprintf(to, ", \"op\": ");
    ls_json_text(to, n->op);
    fprintf(to, ", \"kind\": \"%s\", \"cost\": %.17g", kind[n->kind], n->cost);
    put_ids(to, "inputs", n->in, n->nin);
    put_ids(to, "outputs", n->out, n->nout);
    put_ids(to, "updates", n->upd, n->nupd);
    if (n->workspace)
        fprintf(to, ", \"workspace\": %" PRId64, n->workspace);
    for (uint32_t k = 0; k < n->ninplace; k++)
        fprintf(to, "%s[%" PRIu32 ", %" PRIu32 "]%s", k ? ", " : ", \"inplace\": [",
                n->inplace[k].out, n->inplace[k].in, k + 1 == n->ninplace ? "]" : "");
    fprintf(to, "%s%s", n->once ? ", \"once\": true" : "",
            n->alternative ? ", \"alternative\": true" : "");
    if (n->of >= 0)
        fprintf(to, ", \"of\": %" PRId64, n->of);
    if (g->pass != NULL && g->pass[i] > 0)
        fprintf(to, ", \"pass\": %" PRIu32, g->pass[i]);
    fprintf(to, "}");
}

void ls_dag_write(FILE *to, const LsDag *g)
{
    const char *comma = "";
    fprintf(to, "{\"format\": \"lowerset-graph\", \"version\": 1, \"name\": ");
    ls_json_text(to, g->name);
    fprintf(to, ", \"alignment\": %" PRId64 ",\n\"outputs\": [", g->alignment);
    for (uint32_t t = 0; t < g->ntensor; t++)
        if (g->tensor[t].output) {
            fprintf(to, "%s%" PRIu32, comma, t);
            comma = ", ";
        }
    fprintf(to, "], \"required\": [");
    comma = "";
    for (uint32_t i = 0; i < g->nnode; i++)
        if (g->node[i].required) {
            fprintf(to, "%s%" PRIu32, comma, i);
            comma = ", ";
        }
    fprintf(to, "],\n\"tensors\": [\n");
    for (uint32_t t = 0; t < g->ntensor; t++) {
        fprintf(to, " {\"id\": %" PRIu32 ", \"name\": ", t);
        ls_json_text(to, g->tensor[t].name);
        if (ls_dag_type(g, t) != NULL) {
            fprintf(to, ", \"type\": ");
            ls_json_text(to, ls_dag_type(g, t));
        }
        fprintf(to, ", \"bytes\": %" PRId64 "%s}%s\n", g->tensor[t].bytes,
                g->tensor[t].persistent ? ", \"persistent\": true" : "",
                t + 1 < g->ntensor ? "," : "");
    }
    fprintf(to, "],\n\"nodes\": [\n");
    for (uint32_t i = 0; i < g->nnode; i++) {
        put_node(to, g, i);
        fprintf(to, "%s\n", i + 1 < g->nnode ? "," : "");
    }
    fprintf(to, "]}\n");
}
