/* scheduler/plan/plan_json.c -- reads and writes "lowerset-schedule" version 1. */
#include "scheduler/plan/plan_json.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_text.h"
#include "base/read_file.h"
#include "scheduler/graph/instance.h"

static void put_run(FILE *to, const LsDag *g, const LsPlan *plan, const LsPlanStep *s)
{
    const LsDagNode *n = &g->node[s->id];
    fprintf(to, " {\"compute\": %" PRIu32 ", \"name\": ", s->id);
    ls_json_text(to, n->name);
    for (uint32_t k = 0; k < n->nout && !plan->unplaced; k++)
        fprintf(to, "%s\"%" PRIu32 "\": %" PRId64 "%s", k ? ", " : ", \"offsets\": {", n->out[k],
                plan->offset[s->offset + k], k + 1 == n->nout ? "}" : "");
    if (s->workspace_offset >= 0)
        fprintf(to, ", \"workspace_offset\": %" PRId64, s->workspace_offset);
    for (uint32_t k = 0; k < s->nreuse; k++)
        fprintf(to, "%s[%" PRIu32 ", %" PRIu32 "]%s", k ? ", " : ", \"reuse\": [",
                plan->reuse[s->reuse + k].out, plan->reuse[s->reuse + k].in,
                k + 1 == s->nreuse ? "]" : "");
    fprintf(to, "}");
}

static void put_costs_of(FILE *to, const LsCostsOf *of)
{
    if (of->machine != NULL) {
        fprintf(to, ", \"machine\": ");
        ls_json_text(to, of->machine);
    }
    if (of->threads > 0)
        fprintf(to, ", \"threads\": %d", of->threads);
    if (of->precision != NULL) {
        fprintf(to, ", \"precision\": ");
        ls_json_text(to, of->precision);
    }
}

void ls_plan_write(FILE *to, const LsDag *g, const LsPlan *plan, const LsPlanReport *report)
{
    char hash[17];
    ls_plan_hash(plan, hash);
    fprintf(to, "{\"format\": \"lowerset-schedule\", \"version\": 1, \"graph\": ");
    ls_json_text(to, g->name);
    fprintf(to, ", \"strategy\": ");
    ls_json_text(to, plan->strategy);
    if (report != NULL)
        put_costs_of(to, &report->of);
    fprintf(to,
            ", \"hash\": \"%s\",\n\"claims\": {\"live_peak\": %" PRId64 ", \"cost\": %.17g"
            ", \"base_cost\": %.17g, \"persistent_bytes\": %" PRId64,
            hash, plan->live_peak, plan->cost, plan->base_cost, ls_dag_persistent_bytes(g));
    if (!plan->unplaced)
        fprintf(to, ", \"arena_peak\": %" PRId64, plan->arena);
    if (report != NULL && report->budget > 0)
        fprintf(to, ", \"budget\": %" PRId64, report->budget);
    if (report != NULL)
        fprintf(to, ", \"cost_lower_bound\": %.17g", report->bound);
    fprintf(to, "},\n\"steps\": [\n");
    for (uint32_t s = 0; s < plan->nstep; s++) {
        if (plan->step[s].free)
            fprintf(to, " {\"free\": %" PRIu32 "}", plan->step[s].id);
        else
            put_run(to, g, plan, &plan->step[s]);
        fprintf(to, "%s\n", s + 1 < plan->nstep ? "," : "");
    }
    fprintf(to, "]}\n");
}

typedef struct Reader {
    LsArena *arena;
    const LsDag *g;
    LsPlan *plan;
    uint32_t offset_room, reuse_room;
    bool *ran;                  /* by node */
    bool some;                  /* a run with results was read, which decides whether all runs have
                                 * offsets */
    char *hash;                 /* receives the stated hash, [17] */
    LsWhy why;
} Reader;

#define fail(r, ...) ls_why(&(r)->why, __VA_ARGS__)

static bool get_int(const cJSON *v, int64_t below, int64_t *to)
{
    if (!cJSON_IsNumber(v) || v->valuedouble < 0 || v->valuedouble > 9007199254740992.0
        || v->valuedouble != floor(v->valuedouble) || (int64_t)v->valuedouble >= below)
        return false;
    *to = (int64_t)v->valuedouble;
    return true;
}

/* Reads the offsets. Either all runs with results have offsets, or none. */
static bool get_offsets(Reader *r, const cJSON *o, const LsDagNode *n)
{
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(o, "offsets");
    LsPlan *p = r->plan;
    if (n->nout != 0 && !r->some)
        p->unplaced = list == NULL;
    r->some |= n->nout != 0;
    if (n->nout != 0 && p->unplaced != (list == NULL))
        return fail(r, list == NULL ? "no 'offsets'" : "'offsets', but earlier runs had none");
    if (list != NULL && (!cJSON_IsObject(list) || cJSON_GetArraySize(list) != (int)n->nout))
        return fail(r, "'offsets' does not name the outputs, each once");
    p->offset = ls_arena_grow(r->arena, p->offset, p->noffset, p->noffset + n->nout + 1u,
                              sizeof *p->offset, &r->offset_room);
    for (uint32_t k = 0; k < n->nout; k++) {
        char key[16];
        int64_t *at = &p->offset[p->noffset++];
        *at = -1;
        snprintf(key, sizeof key, "%" PRIu32, n->out[k]);
        if (!p->unplaced
            && !get_int(cJSON_GetObjectItemCaseSensitive(list, key), INT64_MAX, at))
            return fail(r, "no offset for tensor %s", key);
    }
    return true;
}

static bool get_reuse(Reader *r, const cJSON *o, LsPlanStep *s)
{
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(o, "reuse"), *v;
    LsPlan *p = r->plan;
    s->reuse = p->nreuse;
    if (list != NULL && !cJSON_IsArray(list))
        return fail(r, "'reuse' is not a list");
    cJSON_ArrayForEach(v, list) {
        int64_t out, in;
        if (!cJSON_IsArray(v) || cJSON_GetArraySize(v) != 2
            || !get_int(cJSON_GetArrayItem(v, 0), r->g->ntensor, &out)
            || !get_int(cJSON_GetArrayItem(v, 1), r->g->ntensor, &in))
            return fail(r, "an item of 'reuse' is not [output, input]");
        p->reuse = ls_arena_grow(r->arena, p->reuse, p->nreuse, p->nreuse + 1u, sizeof *p->reuse,
                                 &r->reuse_room);
        p->reuse[p->nreuse++] = (LsDagPair){(uint32_t)out, (uint32_t)in};
        s->nreuse++;
    }
    return true;
}

static bool get_step(Reader *r, const cJSON *o, LsPlanStep *s)
{
    const cJSON *run = cJSON_GetObjectItemCaseSensitive(o, "compute");
    const cJSON *end = cJSON_GetObjectItemCaseSensitive(o, "free");
    int64_t id;
    if (!cJSON_IsObject(o) || (run == NULL) == (end == NULL))
        return fail(r, "not one of compute, free");
    s->workspace_offset = -1;
    s->free = end != NULL;
    if (!get_int(s->free ? end : run, s->free ? r->g->ntensor : r->g->nnode, &id))
        return fail(r, "names no %s", s->free ? "tensor" : "node");
    s->id = (uint32_t)id;
    if (s->free)
        return true;
    const cJSON *ws = cJSON_GetObjectItemCaseSensitive(o, "workspace_offset");
    if (ws != NULL && !get_int(ws, INT64_MAX, &s->workspace_offset))
        return fail(r, "'workspace_offset' is not a byte");
    s->offset = r->plan->noffset;
    s->again = r->ran[s->id];
    r->ran[s->id] = true;
    return get_offsets(r, o, &r->g->node[s->id]) && get_reuse(r, o, s);
}

/* Reads the figures that the plan states of itself. */
static void get_claims(Reader *r, const cJSON *root)
{
    LsPlan *p = r->plan;
    const cJSON *claims = cJSON_GetObjectItemCaseSensitive(root, "claims");
    const cJSON *strategy = cJSON_GetObjectItemCaseSensitive(root, "strategy");
    const cJSON *hash = cJSON_GetObjectItemCaseSensitive(root, "hash");
    const cJSON *cost = cJSON_GetObjectItemCaseSensitive(claims, "cost");
    const cJSON *base = cJSON_GetObjectItemCaseSensitive(claims, "base_cost");
    p->strategy = cJSON_IsString(strategy) ? ls_arena_strdup(r->arena, strategy->valuestring) : "";
    snprintf(r->hash, 17, "%s", cJSON_IsString(hash) ? hash->valuestring : "");
    get_int(cJSON_GetObjectItemCaseSensitive(claims, "live_peak"), INT64_MAX, &p->live_peak);
    get_int(cJSON_GetObjectItemCaseSensitive(claims, "arena_peak"), INT64_MAX, &p->arena);
    p->cost = cJSON_IsNumber(cost) ? cost->valuedouble : 0;
    p->base_cost = cJSON_IsNumber(base) ? base->valuedouble : p->base_cost;
}

static bool get_plan(Reader *r, const cJSON *root)
{
    LsPlan *p = r->plan;
    const cJSON *format = cJSON_GetObjectItemCaseSensitive(root, "format"), *v;
    const cJSON *version = cJSON_GetObjectItemCaseSensitive(root, "version");
    const cJSON *steps = cJSON_GetObjectItemCaseSensitive(root, "steps");
    const cJSON *graph = cJSON_GetObjectItemCaseSensitive(root, "graph");
    const LsWhy whole = {r->why.text, r->why.size, NULL, 0};
    if (!cJSON_IsString(format) || strcmp(format->valuestring, "lowerset-schedule") != 0
        || !cJSON_IsNumber(version) || version->valuedouble != 1 || !cJSON_IsArray(steps))
        return ls_why(&whole, "not a lowerset-schedule of version 1");
    if (cJSON_IsString(graph) && strcmp(graph->valuestring, r->g->name) != 0)
        return ls_why(&whole, "is for graph '%s', not '%s'", graph->valuestring, r->g->name);
    get_claims(r, root);
    p->step = ls_arena_alloc(r->arena, (size_t)cJSON_GetArraySize(steps) + 1, sizeof *p->step);
    cJSON_ArrayForEach(v, steps) {
        if (!get_step(r, v, &p->step[p->nstep]))
            return false;
        r->why.number = ++p->nstep;
    }
    return true;
}

static bool parse(LsArena *arena, const LsDag *dag, const char *text, LsPlan *out, char hash[17],
                  const LsWhy *why)
{
    *out = (LsPlan){0};
    Reader r = {.arena = arena, .g = dag, .plan = out, .hash = hash,
                .why = {why->text, why->size, "step", 0}};
    r.ran = ls_arena_alloc(arena, dag->nnode + 1u, sizeof *r.ran);
    LsArena *scratch = ls_arena_new();
    out->base_cost = ls_prob_new(scratch, dag, false)->base_cost;
    ls_arena_free(scratch);
    cJSON *root = cJSON_Parse(text);
    bool ok = cJSON_IsObject(root) ? get_plan(&r, root) : ls_why(why, "not a JSON object");
    out->arena = out->unplaced ? out->live_peak : out->arena;
    cJSON_Delete(root);
    return ok;
}

bool ls_plan_parse(LsArena *arena, const LsDag *dag, const char *text, LsPlan *out, char *why,
                   size_t size)
{
    char hash[17];
    return parse(arena, dag, text, out, hash, &(LsWhy){.text = why, .size = size});
}

bool ls_plan_read(LsArena *arena, const LsDag *dag, const char *path, LsPlan *out, char hash[17],
                  char *why, size_t size)
{
    LsWhy to = {.text = why, .size = size};
    char *text = ls_read_text(path, &to);
    bool ok = text != NULL && parse(arena, dag, text, out, hash, &to);
    free(text);
    return ok;
}
