/* tests/support/eval_expr.h -- evaluates the scalar expressions of MAP and REDUCE rows (LsOp.expr)
 * in double, by recursive descent over the part of C's grammar that they use. */
#ifndef LS_TESTS_SUPPORT_EVAL_EXPR_H
#define LS_TESTS_SUPPORT_EVAL_EXPR_H

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <stdbool.h>
#include <string.h>

/* whole: of integers */
typedef struct Expr { const char *at; const double *arg; double a, b; bool whole; } Expr;

static double expr_ternary(Expr *e);

static inline int expr_take(Expr *e, const char *token)
{
    while (*e->at == ' ')
        e->at++;
    size_t n = strlen(token);
    if (strncmp(e->at, token, n) != 0)
        return 0;
    e->at += n;
    return 1;
}

static inline double expr_softplus(double x) { return fmax(x, 0) + log1p(exp(-fabs(x))); }

static inline double expr_floor_mod(double a, double b) { return a - floor(a / b) * b; }
static inline double expr_same(double x) { return x; }      /* in double nothing is rounded */

static inline double expr_call(Expr *e)
{
    static const struct {
        const char *name;
        double (*one)(double), (*two)(double, double);
    } fn[] = {{"ls_exp", exp, NULL},         {"ls_log", log, NULL},
              {"ls_sqrt", sqrt, NULL},       {"ls_tanh", tanh, NULL},
              {"ls_erf", erf, NULL},         {"ls_abs", fabs, NULL},
              {"ls_pow", NULL, pow},         {"ls_max", NULL, fmax},
              {"ls_min", NULL, fmin},        {"ls_floor", floor, NULL},
              {"ls_log1p", log1p, NULL},     {"ls_ceil", ceil, NULL},
              {"ls_round", nearbyint, NULL}, {"ls_softplus", expr_softplus, NULL},
              {"ls_sin", sin, NULL},         {"ls_cos", cos, NULL},
              {"ls_tan", tan, NULL},         {"ls_asin", asin, NULL},
              {"ls_acos", acos, NULL},       {"ls_atan", atan, NULL},
              {"ls_sinh", sinh, NULL},       {"ls_cosh", cosh, NULL},
              {"ls_asinh", asinh, NULL},     {"ls_acosh", acosh, NULL},
              {"ls_atanh", atanh, NULL},     {"ls_fmod", NULL, fmod},
              {"ls_floor_mod", NULL, expr_floor_mod},
              {"ls_round_half", expr_same, NULL}, {"ls_round_brain", expr_same, NULL}};
    char name[32];
    int n = 0;
    while (isalnum((unsigned char)e->at[n]) || e->at[n] == '_')
        n++;
    snprintf(name, sizeof name, "%.*s", n, e->at);
    e->at += n;
    expr_take(e, "(");
    double x = expr_ternary(e), y = expr_take(e, ",") ? expr_ternary(e) : 0;
    double z = expr_take(e, ",") ? expr_ternary(e) : 0;
    expr_take(e, ")");
    if (strcmp(name, "ls_fma") == 0)
        return x * y + z;
    if (strcmp(name, "LS_R") == 0)
        return x;
    if (strcmp(name, "ls_sigmoid") == 0)
        return 1 / (1 + exp(-x));
    for (size_t k = 0; k < sizeof fn / sizeof *fn; k++)
        if (strcmp(name, fn[k].name) == 0)
            return fn[k].one != NULL ? fn[k].one(x) : fn[k].two(x, y);
    fprintf(stderr, "tests/support/eval_expr.h does not know '%s'\n", name);
    abort();
}

static inline double expr_primary(Expr *e)
{
    if (expr_take(e, "("))  {
        double v = expr_ternary(e);
        expr_take(e, ")");
        return v;
    }
    if (expr_take(e, "-"))
        return -expr_primary(e);
    if (expr_take(e, "!"))
        return expr_primary(e) == 0;
    if (expr_take(e, "%"))
        return e->arg[strtol(e->at, (char **)&e->at, 10)];
    if (expr_take(e, "$a"))
        return e->a;
    if (expr_take(e, "$b"))
        return e->b;
    return isdigit((unsigned char)*e->at) ? strtod(e->at, (char **)&e->at) : expr_call(e);
}

static inline double expr_product(Expr *e)
{
    double v = expr_primary(e);
    for (;;)
        if (expr_take(e, "*"))
            v *= expr_primary(e);
        else if (expr_take(e, "/"))
            v = e->whole ? trunc(v / expr_primary(e)) : v / expr_primary(e);
        else
            return v;
}

static inline double expr_sum(Expr *e)
{
    double v = expr_product(e);
    for (;;)
        if (expr_take(e, "+"))
            v += expr_product(e);
        else if (expr_take(e, "-"))
            v -= expr_product(e);
        else
            return v;
}

static inline double expr_compare(Expr *e)
{
    double v = expr_sum(e);
    if (expr_take(e, "=="))
        return v == expr_sum(e);
    if (expr_take(e, "!="))
        return v != expr_sum(e);
    if (expr_take(e, "<="))
        return v <= expr_sum(e);
    if (expr_take(e, ">="))
        return v >= expr_sum(e);
    if (expr_take(e, "<"))
        return v < expr_sum(e);
    return expr_take(e, ">") ? v > expr_sum(e) : v;
}

static inline double expr_logic(Expr *e)
{
    double v = expr_compare(e);
    for (;;)
        if (expr_take(e, "&&")) {
            double w = expr_compare(e);
            v = v != 0 && w != 0;
        } else if (expr_take(e, "||")) {
            double w = expr_compare(e);
            v = v != 0 || w != 0;
        } else {
            return v;
        }
}

static inline double expr_ternary(Expr *e)
{
    double v = expr_logic(e);
    if (!expr_take(e, "?"))
        return v;
    double yes = expr_ternary(e);
    expr_take(e, ":");
    double no = expr_ternary(e);
    return v != 0 ? yes : no;
}

static inline double expr_value(const char *text, const double *arg, double a, double b, bool whole)
{
    Expr e = {text, arg, a, b, whole};
    return expr_ternary(&e);
}

#endif
