/* compiler/patterns/patterns_pointwise.c -- matches decomposed GELU by erf and by tanh, hard-swish,
 * log(softmax). */
#include "compiler/patterns/patterns_pointwise.h"

#include "compiler/fold/append.h"

#include <math.h>

static bool near(double a, double b) { return fabs(a - b) <= 1e-4 * fabs(b); }

/* p has n factors, all of them x. */
static bool power_of(const LsProduct *p, LsValueId x, int n)
{
    for (int k = 0; k < p->n; k++)
        if (p->factor[k].i != x.i)
            return false;
    return p->n == n;
}

/* v = x / sqrt(2) */
static bool erf_argument(const LsMatch *m, LsValueId v, LsValueId x)
{
    LsProduct p;
    return ls_product(m, v, &p) && near(p.coef, sqrt(0.5)) && power_of(&p, x, 1);
}

/* v = 0.044715 x^n, read once */
static bool cubic_term(const LsMatch *m, LsValueId v, LsValueId x, int n)
{
    LsProduct p;
    return m->readers[v.i] == 1 && ls_product(m, v, &p) && near(p.coef, 0.044715)
           && power_of(&p, x, n);
}

/* v = sqrt(2 / pi) (x + 0.044715 x^3), or the same with x factored out */
static bool tanh_argument(const LsMatch *m, LsValueId v, LsValueId x)
{
    LsProduct p;
    LsNodeId sum;
    if (!ls_product(m, v, &p) || !near(p.coef, sqrt(2 / acos(-1))) || p.n < 1 || p.n > 2)
        return false;
    for (int k = 0; k < p.n; k++) {
        if (!ls_made_by(m, p.factor[k], LS_OP_ADD, 1, &sum))
            continue;
        LsValueId a = ls_in(m->g, sum, 0), b = ls_in(m->g, sum, 1);
        if (p.n == 1)
            return (a.i == x.i && cubic_term(m, b, x, 3)) || (b.i == x.i && cubic_term(m, a, x, 3));
        LsValueId term = ls_other_than_number(m->g, sum, 1);
        return p.factor[1 - k].i == x.i && ls_is(term) && cubic_term(m, term, x, 2);
    }
    return false;
}

/* 0.5 x (1 + erf(x / sqrt 2)) or 0.5 x (1 + tanh(...)), multiplied in any order */
LsValueId ls_match_gelu(const LsMatch *m, LsNodeId root)
{
    LsProduct p;
    LsNodeId sum, inner;
    if (!ls_product(m, ls_out(m->g, root, 0), &p) || p.n != 2 || !near(p.coef, 0.5))
        return (LsValueId){0};
    for (int k = 0; k < 2; k++) {
        LsValueId x = p.factor[1 - k];
        if (!ls_made_by(m, p.factor[k], LS_OP_ADD, 1, &sum))
            continue;
        LsValueId f = ls_other_than_number(m->g, sum, 1);
        if (ls_made_by(m, f, LS_OP_ERF, 1, &inner) && m->readers[ls_in(m->g, inner, 0).i] == 1
            && erf_argument(m, ls_in(m->g, inner, 0), x))
            return ls_append1(m->r->cx, m->r->to, LS_OP_GELU, ls_image(m->r, x), NULL);
        if (ls_made_by(m, f, LS_OP_TANH, 1, &inner) && m->readers[ls_in(m->g, inner, 0).i] == 1
            && tanh_argument(m, ls_in(m->g, inner, 0), x))
            return ls_append1(m->r->cx, m->r->to, LS_OP_GELU_TANH, ls_image(m->r, x), NULL);
    }
    return (LsValueId){0};
}

/* v = min(max(x + 3, 0), 6), read once */
static bool relu6(const LsMatch *m, LsValueId v, LsValueId x)
{
    LsNodeId clip, sum;
    if (!ls_made_by(m, v, LS_OP_CLIP, 1, &clip) || m->g->node[clip.i].attr.scalar.a != 0
        || m->g->node[clip.i].attr.scalar.b != 6)
        return false;
    return ls_made_by(m, ls_in(m->g, clip, 0), LS_OP_ADD, 1, &sum)
        && ls_other_than_number(m->g, sum, 3).i == x.i;
}

/* x hard_sigmoid(x) with slope 1/6, or x relu6(x + 3) / 6 in any order */
LsValueId ls_match_hard_swish(const LsMatch *m, LsNodeId root)
{
    LsProduct p;
    LsNodeId n;
    if (!ls_product(m, ls_out(m->g, root, 0), &p) || p.n != 2)
        return (LsValueId){0};
    for (int k = 0; k < 2; k++) {
        LsValueId x = p.factor[1 - k];
        const LsScalarAttr *s = NULL;
        if (ls_made_by(m, p.factor[k], LS_OP_HARD_SIGMOID, 1, &n) && ls_in(m->g, n, 0).i == x.i)
            s = &m->g->node[n.i].attr.scalar;
        if ((s != NULL && p.coef == 1 && near(s->a, 1.0 / 6) && near(s->b, 0.5))
            || (near(p.coef, 1.0 / 6) && relu6(m, p.factor[k], x)))
            return ls_append1(m->r->cx, m->r->to, LS_OP_HARD_SWISH, ls_image(m->r, x), NULL);
    }
    return (LsValueId){0};
}

/* log(softmax(x)): as two steps, the log is minus infinity where the softmax underflows to 0 */
LsValueId ls_match_log_softmax(const LsMatch *m, LsNodeId root)
{
    LsNodeId n;
    if (!ls_made_by(m, ls_in(m->g, root, 0), LS_OP_SOFTMAX, 1, &n))
        return (LsValueId){0};
    LsAttr at = m->g->node[n.i].attr;
    return ls_append1(m->r->cx, m->r->to, LS_OP_LOG_SOFTMAX, ls_image(m->r, ls_in(m->g, n, 0)),
                      &at);
}
