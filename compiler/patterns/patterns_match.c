/* compiler/patterns/patterns_match.c -- see the header. */
#include "compiler/patterns/patterns_match.h"

#include <math.h>

bool ls_made_by(const LsMatch *m, LsValueId v, LsOpCode op, uint32_t readers, LsNodeId *n)
{
    *n = m->g->value[v.i].def;
    return m->g->node[n->i].op == op && n->i != 0 && (readers == 0 || m->readers[v.i] == readers);
}

/* v is a constant whose elements all equal `want`, to a relative 1e-4: files hold rounded
 * constants. */
static bool is_number(const LsGraph *g, LsValueId v, double want)
{
    if (!ls_is_const(g, v) || ls_type(g, v) != LS_REAL || g->value[v.i].data == NULL)
        return false;
    int64_t count = ls_count(ls_shape(g, v));
    for (int64_t k = 0; k < count; k++)
        if (!(fabs(ls_const_at(g, v, k) - want) <= 1e-4 * fabs(want)))
            return false;
    return count > 0;
}

LsValueId ls_other_than_number(const LsGraph *g, LsNodeId n, double want)
{
    for (int k = 0; k < 2; k++)
        if (is_number(g, ls_in(g, n, k), want))
            return ls_in(g, n, 1 - k);
    return (LsValueId){0};
}

/* The value of a constant scalar; NaN: v is not one. */
static double number(const LsGraph *g, LsValueId v)
{
    bool one = ls_is_const(g, v) && ls_type(g, v) == LS_REAL && ls_count(ls_shape(g, v)) == 1
        && g->value[v.i].data != NULL;
    return one ? ls_const_at(g, v, 0) : NAN;
}

static bool multiply(const LsMatch *m, LsValueId v, bool root, LsProduct *p)
{
    LsNodeId n = m->g->value[v.i].def;
    LsOpCode op = m->g->node[n.i].op;
    double c = number(m->g, v);
    if (!isnan(c)) {
        p->coef *= c;
        return true;
    }
    bool inner = root || m->readers[v.i] == 1;
    LsValueId a = ls_in(m->g, n, 0), b = ls_in(m->g, n, 1);
    if (inner && op == LS_OP_MUL)
        return multiply(m, a, false, p) && multiply(m, b, false, p);
    double k = ls_is(b) ? number(m->g, b) : NAN;
    if (inner && op == LS_OP_DIV && !isnan(k) && k != 0) {
        p->coef /= k;
        return multiply(m, a, false, p);
    }
    int times = inner && op == LS_OP_POW && (k == 2 || k == 3) ? (int)k : 1;
    for (int i = 0; i < times; i++) {
        if (p->n == 4)
            return false;
        p->factor[p->n++] = times > 1 ? a : v;
    }
    return true;
}

bool ls_product(const LsMatch *m, LsValueId v, LsProduct *p)
{
    *p = (LsProduct){.coef = 1};
    return multiply(m, v, true, p);
}
