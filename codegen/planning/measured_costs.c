/* codegen/planning/measured_costs.c -- see measured_costs.h. */
#include "codegen/planning/measured_costs.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/read_file.h"
#include "compiler/ir/precision.h"

enum { MAX_FILE = 256 << 20, MAX_RESULTS = 64 };    /* bytes of a profile; results of a step */

static bool refuse(LsCtx *cx, const char *path, const char *why)
{
    return ls_error(cx, LS_NOWHERE, LS_E_OPTION, "TRAINER --data ... --profile FILE writes one",
                    "--costs: '%s' is not a profile: %s", path, why);
}

/* The contents of the file; NULL after a diagnostic. */
static char *read_profile(LsCtx *cx, const char *path)
{
    char why[256];
    char *text = ls_read_file(path, MAX_FILE, NULL, &(LsWhy){.text = why, .size = sizeof why});
    if (text == NULL)
        ls_error(cx, LS_NOWHERE, LS_E_IO, NULL, "--costs: cannot read '%s': %s", path, why);
    return text;
}

/* ---- keys ---- */
/* A key with one more result: its elements, and its type if that has 16 bits. */
static char *with_result(LsArena *a, const char *key, double elements, const char *type)
{
    bool narrow = type != NULL && (strcmp(type, "bf16") == 0 || strcmp(type, "f16") == 0);
    return ls_arena_printf(a, "%s %.0f%s", key, elements, narrow ? type : "");
}

static const char *step_key(LsArena *a, const cJSON *o, bool again)
{
    static const char mark[] = " again";    /* the program's suffix of a recomputation */
    const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(o, "name"));
    const char *op = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(o, "op"));
    const cJSON *sizes = cJSON_GetObjectItemCaseSensitive(o, "elements"), *size;
    const cJSON *type = cJSON_GetObjectItemCaseSensitive(o, "types");
    type = cJSON_IsArray(type) ? type->child : NULL;
    if (name == NULL || op == NULL || !cJSON_IsArray(sizes)
        || cJSON_GetArraySize(sizes) > MAX_RESULTS)
        return NULL;
    size_t n = strlen(name), cut = sizeof mark - 1;
    if (again && n >= cut && strcmp(name + n - cut, mark) == 0)
        n -= cut;
    char *key = ls_arena_printf(a, "%.*s\n%s\n", (int)n, name, op);
    cJSON_ArrayForEach(size, sizes) {
        key = with_result(a, key, cJSON_IsNumber(size) ? size->valuedouble : -1,
                          cJSON_GetStringValue(type));
        type = type != NULL ? type->next : NULL;
    }
    return key;
}

static const char *node_key(LsArena *a, const LsProblem *p, uint32_t i)
{
    static const char *const role[] = {"", " backward",
                                       " update"}; /* as codegen/program/phase_tables.c */
    LsNodeId n = p->node_of[i];
    const LsNode *node = &p->g->node[n.i];
    char *key = ls_arena_printf(a, "%s%s\n%s\n", node->name != NULL ? node->name : "",
                                role[node->phase], ls_op[node->op]->name);
    for (int k = 0; k < node->nout; k++) {
        LsValueId y = ls_out(p->g, n, k);
        key = with_result(a, key, (double)ls_count(ls_shape(p->g, y)),
                          ls_precision_name(ls_type(p->g, y)));
    }
    return key;
}

/* ---- reading ---- */
static int by_node(const void *a, const void *b)
{
    const LsMeasuredNode *x = a, *y = b;
    if (x->node != y->node)
        return x->node < y->node ? -1 : 1;
    return strcmp(x->key, y->key);
}

/* Joins the runs of one node to one row. */
static void join_runs(LsMeasured *m)
{
    uint32_t n = 0;
    qsort(m->row, m->nrow, sizeof *m->row, by_node);
    for (uint32_t i = 0; i < m->nrow;) {
        LsMeasuredNode row = m->row[i];
        uint32_t runs = 1;
        while (++i < m->nrow && by_node(&m->row[i], &row) == 0)
            row.ns += m->row[i].ns, runs++;
        row.ns /= runs;
        m->row[n++] = row;
    }
    m->nrow = n;
}

static int whole(const cJSON *o, const char *key)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(o, key);
    return cJSON_IsNumber(v) && v->valuedouble >= 0 && v->valuedouble <= INT32_MAX
               ? (int)v->valuedouble : -1;
}

static bool read_steps(LsCtx *cx, const cJSON *root, LsMeasured *m)
{
    const cJSON *steps = cJSON_GetObjectItemCaseSensitive(root, "steps"), *o;
    const cJSON *model = cJSON_GetObjectItemCaseSensitive(root, "model");
    if (whole(root, "schema") != 1 || !cJSON_IsArray(steps))
        return refuse(cx, m->path, "no \"schema\": 1 with \"steps\"");
    m->model = ls_arena_strdup(cx->arena, cJSON_IsString(model) ? model->valuestring : "?");
    m->threads = whole(root, "threads");
    m->real_bytes = whole(root, "real_bytes");
    m->batch = whole(root, "batch");
    m->row = ls_arena_alloc(cx->arena, (size_t)cJSON_GetArraySize(steps), sizeof *m->row);
    cJSON_ArrayForEach(o, steps) {
        const cJSON *ns = cJSON_GetObjectItemCaseSensitive(o, "ns");
        const char *key =
            step_key(cx->arena, o, cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(o, "again")));
        int node = whole(o, "node");
        if (key == NULL || node < 0 || !cJSON_IsNumber(ns) || !(ns->valuedouble >= 0)
            || !(ns->valuedouble < 1e15))
            return refuse(cx, m->path, ls_arena_printf(cx->arena, "step %" PRIu32
                          " lacks a valid name, op, node, elements or ns", m->nrow));
        m->row[m->nrow++] = (LsMeasuredNode){key, (uint32_t)node, ns->valuedouble};
    }
    join_runs(m);
    return true;
}

bool ls_measured_load(LsCtx *cx, const char *path, LsMeasured *out)
{
    *out = (LsMeasured){.path = path};
    char *text = read_profile(cx, path);
    if (text == NULL)
        return false;
    cJSON *root = cJSON_Parse(text);
    bool ok = root != NULL ? read_steps(cx, root, out) : refuse(cx, path, "not JSON");
    cJSON_Delete(root);
    free(text);
    return ok;
}

/* ---- matching ---- */
typedef struct Key { const char *key; uint32_t id; } Key;      /* of a node, or of a row */

static int by_key(const void *a, const void *b)
{
    const Key *x = a, *y = b;
    int c = strcmp(x->key, y->key);
    return c != 0 ? c : x->id < y->id ? -1 : x->id > y->id;
}

/* Sets row_of[node] to 1 + the node's row, or 0. Rows with the node's number match first, then by
 * order. */
static void match(LsCtx *cx, const LsMeasured *m, const LsProblem *p, uint32_t *row_of)
{
    uint32_t n = p->dag.nnode, nnode = 0, nrow = 0, r = 0;
    Key *node = ls_arena_alloc(cx->arena, n, sizeof *node);
    Key *row = ls_arena_alloc(cx->arena, m->nrow, sizeof *row);
    for (uint32_t i = 0; i < n; i++) {
        const char *key = node_key(cx->arena, p, i);
        while (r < m->nrow && m->row[r].node < i)
            row[nrow++] = (Key){m->row[r].key, r}, r++;
        if (r < m->nrow && m->row[r].node == i && strcmp(m->row[r].key, key) == 0)
            row_of[i] = ++r;
        else
            node[nnode++] = (Key){key, i};
    }
    for (; r < m->nrow; r++)
        row[nrow++] = (Key){m->row[r].key, r};
    qsort(node, nnode, sizeof *node, by_key);
    qsort(row, nrow, sizeof *row, by_key);
    for (uint32_t i = 0, k = 0; i < nnode && k < nrow;) {
        int c = strcmp(node[i].key, row[k].key);
        if (c == 0)
            row_of[node[i].id] = row[k].id + 1;
        i += c <= 0;
        k += c >= 0;
    }
}

const double *ls_measured_find(LsCtx *cx, const LsMeasured *from, const LsProblem *p)
{
    uint32_t *row_of = ls_arena_alloc(cx->arena, p->dag.nnode, sizeof *row_of);
    double *ns = ls_arena_alloc(cx->arena, p->dag.nnode, sizeof *ns);
    match(cx, from, p, row_of);
    for (uint32_t i = 0; i < p->dag.nnode; i++)
        ns[i] = row_of[i] != 0 ? from->row[row_of[i] - 1].ns : -1;
    return ns;
}

/* Measured and modelled time of the nodes found, by class; all classes at LS_NCOSTS. */
typedef struct Totals { double measured[LS_NCOSTS + 1], modelled[LS_NCOSTS + 1]; } Totals;

/* Returns the modelled ns of all nodes but alternatives, which run instead of their node; *t: of
 * the nodes found. */
static double add_up(LsMeasured *from, const LsProblem *p, const LsMachine *m, const double *ns,
                     Totals *t)
{
    double all = 0;
    from->nodes = from->matched = 0;
    for (uint32_t i = 0; i < p->dag.nnode; i++) {
        const LsDagNode *n = &p->dag.node[i];
        LsCostClass c = ls_problem_work(p, i, m).kind;
        if (!n->alternative) {
            all += n->cost;
            from->nodes++;
        }
        if (ns[i] < 0)
            continue;
        from->matched += !n->alternative;
        t->modelled[c] += n->cost, t->modelled[LS_NCOSTS] += n->cost;
        t->measured[c] += ns[i], t->measured[LS_NCOSTS] += ns[i];
    }
    return all;
}

bool ls_measured_price(LsCtx *cx, LsMeasured *from, LsProblem *p, const LsMachine *m)
{
    Totals t = {{0}, {0}};
    if (from->real_bytes != p->target.real_bytes)
        return ls_error(cx, LS_NOWHERE, LS_E_OPTION, "measure the program built with the same "
                        "--precision", "--costs: '%s' was measured with f%d, this is f%d",
                        from->path, 8 * from->real_bytes, 8 * p->target.real_bytes);
    if (from->batch != p->g->batch)
        return ls_error(cx, LS_NOWHERE, LS_E_OPTION, "measure the program built with the same "
                        "--batch", "--costs: '%s' was measured with batch %d, this is %" PRId64,
                        from->path, from->batch, p->g->batch);
    ls_problem_price(p, m);
    const double *ns = ls_measured_find(cx, from, p);
    double all = add_up(from, p, m, ns, &t), like = 0;
    if (t.modelled[LS_NCOSTS] < all / 2)
        return ls_error(cx, LS_NOWHERE, LS_E_OPTION,
                        "measure a program built from this model, with this batch",
                        "--costs: %" PRIu32 " of %" PRIu32 " nodes are in '%s', measured on '%s': "
                        "the model, its shapes or its types differ", from->matched, from->nodes,
                        from->path, from->model);
    for (uint32_t i = 0; i < p->dag.nnode; i++) {
        LsDagNode *n = &p->dag.node[i];
        LsCostClass c = ls_problem_work(p, i, m).kind;
        int k = t.modelled[c] > 0 && t.measured[c] > 0 ? (int)c : LS_NCOSTS;
        double modelled = n->cost;
        if (ns[i] >= 0)
            n->cost = ns[i];
        else if (n->alternative && like > 0)    /* its node precedes it in the list */
            n->cost *= like;
        else if (t.modelled[k] > 0)
            n->cost *= t.measured[k] / t.modelled[k];
        if (!n->alternative)
            like = modelled > 0 ? n->cost / modelled : 0;
    }
    return true;
}
