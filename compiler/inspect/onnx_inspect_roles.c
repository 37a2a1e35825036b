/* compiler/inspect/onnx_inspect_roles.c -- the table of tensors and batch norms of lowerset
 * inspect. */
#include "compiler/inspect/onnx_inspect_roles.h"

#include "base/plain_text.h"

#include <inttypes.h>
#include <string.h>

enum { MANY = 40 };             /* limit for listing tensors one by one */

static void print_tensor(FILE *to, LsArena *a, const LsDecision *d)
{
    ls_plain_printf(to, "    %-9s  %-28s %-14s %s", ls_role_name[d->role], d->name,
                    ls_shape_text(a, &d->shape), d->why);
    if (d->role == LS_ROLE_TRAINED && d->readers > 1)
        fprintf(to, "; shared: %" PRIu32 " operands read it", d->readers);
    fputc('\n', to);
}

/* Reasons may name a tensor ('fc.weight'): two reasons are the same if they agree up to that. */
static bool same_group(const LsDecision *a, const LsDecision *b)
{
    size_t n = strcspn(a->why, "'");
    return a->role == b->role && strncmp(a->why, b->why, n + 1) == 0;
}

static void print_groups(FILE *to, LsArena *a, const LsDecisions *d)
{
    bool *done = ls_arena_alloc(a, d->ntensor, sizeof *done);
    for (uint32_t i = 0; i < d->ntensor; i++) {
        uint32_t n = 0, shared = 0;
        const LsDecision *first = &d->tensor[i];
        for (uint32_t k = i; k < d->ntensor && !done[i]; k++)
            if (same_group(first, &d->tensor[k])) {
                n++;
                shared += d->tensor[k].readers > 1;
                done[k] = k != i;
            }
        if (n == 0)
            continue;
        ls_plain_printf(to, "    %-9s  %5" PRIu32 "  %s ('%s'%s)", ls_role_name[first->role], n,
                        first->why, first->name, n > 1 ? ", ..." : "");
        if (first->role == LS_ROLE_TRAINED && shared > 0)
            fprintf(to, "; %" PRIu32 " shared by several operands", shared);
        fputc('\n', to);
    }
}

static void print_batch_norms(FILE *to, const LsDecisions *d)
{
    for (int by = 0; by < LS_NBN_BY; by++) {
        uint32_t n = 0;
        const char *first = NULL;
        for (uint32_t k = 0; k < d->nbn; k++)
            if (d->bn[k].by == (LsBnBy)by && n++ == 0)
                first = d->bn[k].node;
        if (n > 0)
            ls_plain_printf(to, "  batch norms %" PRIu32 " by %s ('%s'%s)", n, ls_bn_by_text[by],
                            first, n > 1 ? ", ..." : "");
        if (n > 0)
            fputc('\n', to);
    }
}

void ls_inspect_roles_text(FILE *to, LsArena *a, const LsDecisions *d, bool all)
{
    if (d->ntensor > 0)
        fprintf(to, "  tensors of reals%s\n",
                d->ntensor > MANY && !all ? " (-v lists each)" : "");
    if (d->ntensor > MANY && !all)
        print_groups(to, a, d);
    else
        for (uint32_t k = 0; k < d->ntensor; k++)
            print_tensor(to, a, &d->tensor[k]);
    print_batch_norms(to, d);
    for (int asked = 0; asked < 2; asked++) {
        const char *stops = ls_stops_text(a, d, asked == 1);
        if (stops != NULL)
            ls_plain_printf(to, "  gradients   %s", stops);
        if (stops != NULL)
            fputc('\n', to);
    }
}

void ls_inspect_roles_json(cJSON *o, const LsDecisions *d)
{
    cJSON *tensors = cJSON_AddArrayToObject(o, "tensors"), *norms, *stops;
    for (uint32_t k = 0; k < d->ntensor; k++) {
        const LsDecision *t = &d->tensor[k];
        cJSON *row = cJSON_CreateObject(), *dims = cJSON_AddArrayToObject(row, "dims");
        cJSON_AddStringToObject(row, "name", t->name);
        cJSON_AddStringToObject(row, "role", ls_role_name[t->role]);
        cJSON_AddStringToObject(row, "why", t->why);
        cJSON_AddNumberToObject(row, "readers", t->readers);
        for (int i = 0; i < t->shape.rank; i++)
            cJSON_AddItemToArray(dims, cJSON_CreateNumber((double)t->shape.dim[i]));
        cJSON_AddItemToArray(tensors, row);
    }
    norms = cJSON_AddArrayToObject(o, "batch_norms");
    for (uint32_t k = 0; k < d->nbn; k++) {
        cJSON *row = cJSON_CreateObject();
        cJSON_AddStringToObject(row, "node", d->bn[k].node);
        cJSON_AddStringToObject(row, "statistics", ls_bn_by_text[d->bn[k].by]);
        cJSON_AddItemToArray(norms, row);
    }
    if (d->nempty > 0) {
        cJSON *caches = cJSON_AddObjectToObject(o, "caches");
        cJSON_AddNumberToObject(caches, "empty_inputs", d->nempty);
        cJSON_AddNumberToObject(caches, "outputs_left_out", d->nextended);
    }
    stops = cJSON_AddArrayToObject(o, "stopped_gradients");
    for (uint32_t k = 0; k < d->nstop; k++) {
        cJSON *row = cJSON_CreateObject();
        cJSON_AddStringToObject(row, "value", d->stop[k].value);
        cJSON_AddStringToObject(row, "by",
                                d->stop[k].asked ? "--stop-gradient" : "the exporter's notes");
        cJSON_AddItemToArray(stops, row);
    }
}
