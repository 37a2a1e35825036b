/* scheduler/graph/dag_read.c -- reads "lowerset-graph" version 1. */
#include "scheduler/graph/dag_read.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/read_file.h"

typedef struct Reader {
    LsArena *arena;
    LsWhy why;
} Reader;

#define fail(r, ...) ls_why(&(r)->why, __VA_ARGS__)

/* Reads an integer that a double holds exactly. absent: the value of a missing key; INT64_MIN: an
 * error. */
static bool get_int(Reader *r, const cJSON *o, const char *key, int64_t absent, int64_t *to)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(o, key);
    if (v == NULL && absent != INT64_MIN) {
        *to = absent;
        return true;
    }
    if (v == NULL)
        return fail(r, "no '%s'", key);
    if (!cJSON_IsNumber(v) || fabs(v->valuedouble) > 9007199254740992.0
        || v->valuedouble != floor(v->valuedouble))
        return fail(r, "'%s' is not an integer up to 2^53", key);
    *to = (int64_t)v->valuedouble;
    return true;
}

static bool get_flag(Reader *r, const cJSON *o, const char *key, bool *to)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(o, key);
    *to = cJSON_IsTrue(v);
    return v == NULL || cJSON_IsBool(v) || fail(r, "'%s' is neither true nor false", key);
}

static const char *get_text(Reader *r, const cJSON *o, const char *key)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(o, key);
    return cJSON_IsString(v) ? ls_arena_strdup(r->arena, v->valuestring) : "";
}

static bool to_id(const cJSON *v, uint32_t *to)
{
    if (!cJSON_IsNumber(v) || v->valuedouble < 0 || v->valuedouble >= (double)UINT32_MAX
        || v->valuedouble != floor(v->valuedouble))
        return false;
    *to = (uint32_t)v->valuedouble;
    return true;
}

static bool get_ids(Reader *r, const cJSON *o, const char *key, const uint32_t **to, uint32_t *n)
{
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(o, key), *v;
    *n = 0;
    if (list == NULL)
        return true;
    if (!cJSON_IsArray(list))
        return fail(r, "'%s' is not a list", key);
    uint32_t *id = ls_arena_alloc(r->arena, (size_t)cJSON_GetArraySize(list) + 1, sizeof *id);
    cJSON_ArrayForEach(v, list)
        if (!to_id(v, &id[(*n)++]))
            return fail(r, "'%s' has something that is not an id", key);
    *to = id;
    return true;
}

static bool get_pairs(Reader *r, const cJSON *o, LsDagNode *n)
{
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(o, "inplace"), *v;
    if (list == NULL)
        return true;
    if (!cJSON_IsArray(list))
        return fail(r, "'inplace' is not a list");
    LsDagPair *pair = ls_arena_alloc(r->arena, (size_t)cJSON_GetArraySize(list) + 1, sizeof *pair);
    cJSON_ArrayForEach(v, list) {
        if (!cJSON_IsArray(v) || cJSON_GetArraySize(v) != 2
            || !to_id(cJSON_GetArrayItem(v, 0), &pair[n->ninplace].out)
            || !to_id(cJSON_GetArrayItem(v, 1), &pair[n->ninplace].in))
            return fail(r, "'inplace' has something that is not [output, input]");
        n->ninplace++;
    }
    n->inplace = pair;
    return true;
}

static bool get_id(Reader *r, const cJSON *o, uint32_t place)
{
    int64_t id = 0;
    return get_int(r, o, "id", INT64_MIN, &id)
           && (id == place || fail(r, "ids must be 0, 1, 2, ... in order"));
}

static bool get_tensor(Reader *r, const cJSON *o, uint32_t place, LsDagTensor *t)
{
    r->why.at = "tensor", r->why.number = place;
    if (!cJSON_IsObject(o))
        return fail(r, "not an object");
    t->name = get_text(r, o, "name");
    return get_id(r, o, place) && get_int(r, o, "bytes", INT64_MIN, &t->bytes)
           && (t->bytes >= 0 || fail(r, "negative bytes"))
           && get_flag(r, o, "persistent", &t->persistent);
}

static bool get_kind(Reader *r, const cJSON *o, LsDagKind *to)
{
    static const char *const name[] = {"forward", "backward", "optimizer"};
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(o, "kind");
    for (int k = 0; cJSON_IsString(v) && k < 3; k++)
        if (strcmp(v->valuestring, name[k]) == 0) {
            *to = (LsDagKind)k;
            return true;
        }
    return fail(r, "'kind' is none of forward, backward, optimizer");
}

static bool get_node(Reader *r, const cJSON *o, uint32_t place, LsDagNode *n)
{
    r->why.at = "node", r->why.number = place;
    if (!cJSON_IsObject(o))
        return fail(r, "not an object");
    n->name = get_text(r, o, "name");
    n->op = get_text(r, o, "op");
    const cJSON *cost = cJSON_GetObjectItemCaseSensitive(o, "cost");
    if (!cJSON_IsNumber(cost) || !(cost->valuedouble >= 0))
        return fail(r, "'cost' is not a number from 0");
    n->cost = cost->valuedouble;
    return get_id(r, o, place) && get_kind(r, o, &n->kind)
           && get_int(r, o, "workspace", 0, &n->workspace)
           && (n->workspace >= 0 || fail(r, "'workspace' is not a byte count"))
           && get_ids(r, o, "inputs", &n->in, &n->nin)
           && get_ids(r, o, "outputs", &n->out, &n->nout)
           && get_ids(r, o, "updates", &n->upd, &n->nupd) && get_pairs(r, o, n)
           && get_flag(r, o, "once", &n->once) && get_flag(r, o, "alternative", &n->alternative)
           && get_int(r, o, "of", -1, &n->of);
}

/* Nodes that say nothing of passes are of pass 0. */
static bool get_pass(Reader *r, const cJSON *o, uint32_t *pass, LsDag *g)
{
    int64_t number = 0;
    if (!get_int(r, o, "pass", 0, &number))
        return false;
    if (number < 0 || number > UINT32_MAX)
        return fail(r, "'pass' is not the number of a pass");
    pass[g->nnode] = (uint32_t)number;
    if (number > 0)
        g->pass = pass;
    return true;
}

/* Reads a list of ids and marks these tensors (outputs) or nodes (required). */
static bool get_marks(Reader *r, const cJSON *root, const char *key, LsDag *g, bool nodes)
{
    const uint32_t *id = NULL;
    uint32_t n;
    if (!get_ids(r, root, key, &id, &n))
        return false;
    for (uint32_t k = 0; k < n; k++) {
        if (id[k] >= (nodes ? g->nnode : g->ntensor))
            return fail(r, "'%s' has %" PRIu32 ", which is no id", key, id[k]);
        bool *mark = nodes ? &g->node[id[k]].required : &g->tensor[id[k]].output;
        if (*mark)
            return fail(r, "'%s' names %" PRIu32 " twice", key, id[k]);
        *mark = true;
    }
    return true;
}

static bool get_graph(Reader *r, const cJSON *root, LsDag *g)
{
    int64_t version = 0;
    const cJSON *format = cJSON_GetObjectItemCaseSensitive(root, "format"), *v;
    const cJSON *tensors = cJSON_GetObjectItemCaseSensitive(root, "tensors");
    const cJSON *nodes = cJSON_GetObjectItemCaseSensitive(root, "nodes");
    if (!cJSON_IsString(format) || strcmp(format->valuestring, "lowerset-graph") != 0
        || !get_int(r, root, "version", 0, &version) || version != 1)
        return fail(r, "not a lowerset-graph of version 1");
    if (!cJSON_IsString(cJSON_GetObjectItemCaseSensitive(root, "name")))
        return fail(r, "no 'name'");
    if (!cJSON_IsArray(tensors) || !cJSON_IsArray(nodes))
        return fail(r, "'tensors' and 'nodes' must be lists");
    g->name = get_text(r, root, "name");
    if (!get_int(r, root, "alignment", 1, &g->alignment))
        return false;
    g->tensor =
        ls_arena_alloc(r->arena, (size_t)cJSON_GetArraySize(tensors) + 1, sizeof *g->tensor);
    g->node = ls_arena_alloc(r->arena, (size_t)cJSON_GetArraySize(nodes) + 1, sizeof *g->node);
    uint32_t *pass = ls_arena_alloc(r->arena, (size_t)cJSON_GetArraySize(nodes) + 1, sizeof *pass);
    cJSON_ArrayForEach(v, tensors) {
        if (!get_tensor(r, v, g->ntensor, &g->tensor[g->ntensor]))
            return false;
        g->ntensor++;
    }
    cJSON_ArrayForEach(v, nodes) {
        if (!get_node(r, v, g->nnode, &g->node[g->nnode]) || !get_pass(r, v, pass, g))
            return false;
        g->nnode++;
    }
    r->why.at = NULL;
    return get_marks(r, root, "outputs", g, false) && get_marks(r, root, "required", g, true);
}

LsDag *ls_dag_parse(LsArena *arena, const char *text, char *why, size_t size)
{
    Reader r = {.arena = arena, .why = {.text = why, .size = size}};
    LsDag *g = ls_arena_alloc(arena, 1, sizeof *g);
    cJSON *root = cJSON_Parse(text);
    bool ok = cJSON_IsObject(root) ? get_graph(&r, root, g) : fail(&r, "not a JSON object");
    cJSON_Delete(root);
    return ok && ls_dag_check(g, why, size) ? g : NULL;
}

LsDag *ls_dag_read(LsArena *arena, const char *path, char *why, size_t size)
{
    char *text = ls_read_text(path, &(LsWhy){.text = why, .size = size});
    LsDag *g = text != NULL ? ls_dag_parse(arena, text, why, size) : NULL;
    free(text);
    return g;
}
