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

/* The state whose element stands at `at`, "m[i]"; -1: none does. */
static int element_of(const Text *t, const char *at)
{
    const size_t n = letters(at);
    for (int k = 0; k < t->rule->nstate; k++)
        if (strlen(t->rule->state[k].var) == n && memcmp(t->rule->state[k].var, at, n) == 0
            && strncmp(at + n, "[i]", 3) == 0)
            return k;
    return -1;
}

/* n letters of a line behind `made`: elements of moments in bfloat16 are in registers. */
static const char *with_elements(const Text *t, const char *made, const char *at, size_t n)
{
    LsArena *a = t->k->g->arena;
    const char *end = at + n;
    while (at < end) {
        const size_t word = letters(at);
        const int k = word > 0 && t->h->bf16 != 0 ? element_of(t, at) : -1;
        made = k >= 0 ? ls_arena_printf(a, "%s%s_now", made, t->rule->state[k].var)
                      : ls_arena_printf(a, "%s%.*s", made, (int)(word > 0 ? word : 1), at);
        at += k >= 0 ? word + 3 : word > 0 ? word : 1;
    }
    return made;
}

static void line(const Text *t, const char *at, const char *end)
{
    const char *made = "";
    LsArena *a = t->k->g->arena;
    while (at < end) {
        const size_t n = strcspn(at, "$@\n");
        made = with_elements(t, made, at, n);
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
