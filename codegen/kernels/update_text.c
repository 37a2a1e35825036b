/* codegen/kernels/update_text.c -- see update_text.h. */
#include "codegen/kernels/update_text.h"

#include "base/arena.h"

#include <assert.h>
#include <string.h>

typedef struct Text {
    const LsKernelText *k;
    const LsRule *rule;
    const LsHyper *h;
    unsigned state;
} Text;

static size_t letters(const char *at)
{
    return strspn(at, "abcdefghijklmnopqrstuvwxyz_0123456789");
}

static double value(const Text *t, const char *name, size_t n)
{
    for (int k = 0; k < t->rule->nstate; k++)
        if (strlen(t->rule->state[k].var) == n && memcmp(t->rule->state[k].var, name, n) == 0)
            return t->state >> k & 1;
    const double *v = ls_hyper_find(t->h, name, n);
    assert(v != NULL);
    return *v;
}

/* Whether all conditions at *at hold; *at moves behind them. */
static bool holds(const Text *t, const char **at)
{
    bool all = true;
    while (**at == '?' || **at == '!') {
        const size_t n = letters(*at + 1);
        all &= (value(t, *at + 1, n) != 0) == (**at == '?');
        *at += 1 + n;
    }
    *at += **at == ' ';
    return all;
}

/* The text of a name at *at, "$beta1", "$~beta1" or "@beta1"; *at moves behind it. */
static const char *number(const Text *t, const char **at)
{
    LsArena *a = t->k->g->arena;
    const bool real = **at == '$', rest = (*at)[1] == '~';
    const char *name = *at + 1 + rest;
    const size_t n = letters(name);
    const double v = value(t, name, n), is = rest ? 1 - v : v;
    *at = name + n;
    return real ? ls_literal(a, LS_REAL, is, 0, t->k->target->real_bytes)
                : ls_arena_printf(a, "%.17g", is);
}

static void line(const Text *t, const char *at, const char *end)
{
    const char *made = "";
    LsArena *a = t->k->g->arena;
    while (at < end) {
        const size_t n = strcspn(at, "$@\n");
        made = ls_arena_printf(a, "%s%.*s", made, (int)n, at);
        at += n;
        if (at < end)
            made = ls_arena_printf(a, "%s%s", made, number(t, &at));
    }
    ls_emit_line(t->k->e, "%s", made);
}

void ls_update_text(const LsKernelText *k, const LsRule *rule, const LsHyper *h, unsigned state,
                    const char *text)
{
    const Text t = {k, rule, h, state};
    for (const char *at = text, *end; at != NULL; at = *end == '\n' ? end + 1 : NULL) {
        end = at + strcspn(at, "\n");
        if (holds(&t, &at))
            line(&t, at, end);
    }
}
