/* scheduler/plan/keep_forget_hints.c -- finds the tensors and nodes that a person's hints mean. */
#include "scheduler/plan/keep_forget_hints.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/nearest_name.h"
#include "base/reason.h"
#include "scheduler/graph/dag_read.h"
#include "scheduler/plan/hint_graph.h"

static bool has(const char *op, const char *part)
{
    return op != NULL && strcasestr(op, part) != NULL;
}

static bool is_convolution(const LsDagNode *n)
{
    return has(n->op, "conv") && !has(n->op, "convert");
}

static bool is_product(const LsDagNode *n)
{
    return has(n->op, "matmul") || has(n->op, "gemm") || has(n->op, "linear")
        || has(n->op, "einsum") || has(n->op, "attention");
}

/* Writes the names nearest to a glob that matches nothing. */
static void near_misses(const LsDag *g, const char *glob, char *text, size_t size)
{
    enum { SHOWN = 3 };
    const char *best[SHOWN] = {NULL};
    int far[SHOWN];
    for (uint32_t i = 0; i < g->ntensor + g->nnode; i++) {
        const char *name = i < g->ntensor ? g->tensor[i].name : g->node[i - g->ntensor].name;
        if (name == NULL || *name == '\0')
            continue;
        int d = ls_spelling_distance(glob, name), at = SHOWN;
        for (int k = 0; k < SHOWN; k++)         /* a node often has the name of its result */
            d = best[k] != NULL && strcmp(best[k], name) == 0 ? 1 << 20 : d;
        while (at > 0 && (best[at - 1] == NULL || d < far[at - 1]) && d < 1 << 20)
            at--;
        for (int k = SHOWN - 1; k > at; k--)
            best[k] = best[k - 1], far[k] = far[k - 1];
        if (at < SHOWN)
            best[at] = name, far[at] = d;
    }
    size_t used = 0;
    text[0] = '\0';
    for (int k = 0; k < SHOWN && best[k] != NULL && used < size; k++)
        used += (size_t)snprintf(text + used, size - used, "%s '%s'", k ? "," : "; near it:",
                                 best[k]);
}

/* Returns whether the glob matches the name of the tensor or of its maker. */
static bool means(const LsHintMarks *m, const char *glob, uint32_t t)
{
    const LsDag *g = m->dag;
    const char *node = m->maker[t] != UINT32_MAX ? g->node[m->maker[t]].name : NULL;
    return (g->tensor[t].name != NULL && fnmatch(glob, g->tensor[t].name, 0) == 0)
        || (node != NULL && fnmatch(glob, node, 0) == 0);
}

static bool no_match(const LsHintMarks *m, const char *option, const char *glob, const LsWhy *why)
{
    char near[200];
    near_misses(m->dag, glob, near, sizeof near);
    return ls_why(why, "%s: nothing is called '%s'%s", option, glob, near);
}

static bool keep(LsHintMarks *m, const char *glob, const LsWhy *why)
{
    bool found = false;
    for (uint32_t t = 0; t < m->dag->ntensor; t++) {
        if (!means(m, glob, t))
            continue;
        found = true;
        if (m->maker[t] != UINT32_MAX)
            m->kept[m->maker[t]] = true;
    }
    return found || no_match(m, "--keep", glob, why);
}

/* Marks the tensors of a glob that can be forgotten. The others are ignored, unless none can be. */
static bool forget(LsHintMarks *m, const char *glob, const LsWhy *why)
{
    const LsDag *g = m->dag;
    const char *obstacle = NULL, *name = NULL;
    bool found = false;
    for (uint32_t t = 0; t < g->ntensor; t++) {
        if (!means(m, glob, t))
            continue;
        const char *mine = ls_hint_obstacle(m, t);
        if (mine == NULL && m->kept[m->maker[t]])
            return ls_why(why, "--forget %s: '%s' is to be kept as well", glob, g->tensor[t].name);
        m->forgotten[t] = mine == NULL;
        found |= mine == NULL;
        if (obstacle == NULL)
            obstacle = mine, name = g->tensor[t].name;
    }
    if (found)
        return true;
    if (obstacle == NULL)
        return no_match(m, "--forget", glob, why);
    return ls_why(why, "--forget %s: '%s' %s", glob, name, obstacle);
}

static void follow_policy(LsHintMarks *m, LsRecompute policy)
{
    const LsDag *g = m->dag;
    m->no_alternative = policy == LS_RECOMPUTE_NONE;
    for (uint32_t i = 0; i < g->nnode; i++) {
        const LsDagNode *n = &g->node[i];
        m->kept[i] |= policy == LS_RECOMPUTE_NONE
            || (policy == LS_RECOMPUTE_CHEAP && (is_convolution(n) || is_product(n)))
            || (policy == LS_RECOMPUTE_CONV_SAVED && is_convolution(n));
    }
    for (uint32_t t = 0; t < g->ntensor && policy == LS_RECOMPUTE_ALL; t++)
        m->forgotten[t] |= ls_hint_obstacle(m, t) == NULL && !m->kept[m->maker[t]];
}

bool ls_hints_apply(LsArena *arena, const LsDag *dag, const LsHints *hints, LsHinted *out,
                    char *why, size_t size)
{
    LsWhy to = {.text = why, .size = size};
    LsHintMarks m = ls_hint_marks(arena, dag);
    for (int k = 0; k < hints->nkeep; k++)
        if (!keep(&m, hints->keep[k], &to))
            return false;
    bool *forced = ls_arena_alloc(arena, dag->nnode + 1u, sizeof *forced);
    memcpy(forced, m.kept, dag->nnode * sizeof *forced);
    follow_policy(&m, hints->recompute);
    bool *kept = m.kept;
    m.kept = forced;            /* an explicit name outweighs the policy */
    for (int k = 0; k < hints->nforget; k++)
        if (!forget(&m, hints->forget[k], &to))
            return false;
    m.kept = kept;
    for (uint32_t t = 0; t < dag->ntensor; t++)
        if (m.forgotten[t])
            m.kept[m.maker[t]] = false;
    ls_hint_graph(arena, &m, out);
    return ls_dag_check(out->dag, why, size);
}
