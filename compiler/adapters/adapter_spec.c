/* compiler/adapters/adapter_spec.c -- see the header: the option, and what a spec says of a
 * module. */
#include "compiler/adapters/adapter_spec.h"

#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { RANK = 8, ALPHA = 8, MOST_RANK = 1 << 16 };      /* peft's defaults */

static bool bad(LsCtx *cx, const char *text, const char *part, const char *want)
{
    return ls_error(cx, LS_NOWHERE, LS_E_OPTION,
                    "such as r=8,alpha=16,dropout=0.05,rslora,bias=none:q_proj,v_proj",
                    "--lora %s: '%s' is not %s", text, part, want);
}

static bool number(LsCtx *cx, const char *text, const char *part, double least, double most,
                   const char *want, double *to)
{
    char *end;
    const char *value = strchr(part, '=') + 1;
    *to = strtod(value, &end);
    return (end > value && *end == '\0' && *to >= least && *to <= most)
           || bad(cx, text, part, want);
}

static bool set_bias(LsCtx *cx, const char *text, const char *part, LsAdapterSpec *s)
{
    static const char *const word[] = {"bias=none", "bias=all", "bias=lora_only"};
    for (int k = 0; k < 3; k++)
        if (strcmp(part, word[k]) == 0) {
            s->bias = (LsAdapterBias)k;
            return true;
        }
    return bad(cx, text, part, "bias=none, bias=all or bias=lora_only");
}

static bool set_part(LsCtx *cx, const char *text, const char *part, LsAdapterSpec *s)
{
    double v;
    if (strncmp(part, "r=", 2) == 0) {
        if (!number(cx, text, part, 1, MOST_RANK, "r=RANK, a whole number from 1 on", &v))
            return false;
        s->rank = (int64_t)v;
        return v == floor(v) || bad(cx, text, part, "r=RANK, a whole number from 1 on");
    }
    if (strncmp(part, "alpha=", 6) == 0)
        return number(cx, text, part, -1e9, 1e9, "alpha=NUMBER", &s->alpha);
    if (strncmp(part, "dropout=", 8) == 0)
        return number(cx, text, part, 0, 0.999, "dropout=P, from 0 to below 1", &s->dropout);
    if (strncmp(part, "bias=", 5) == 0)
        return set_bias(cx, text, part, s);
    if (strncmp(part, "seed=", 5) == 0) {
        if (!number(cx, text, part, 0, 0x1p53, "seed=NUMBER", &v))
            return false;
        s->seed = (uint64_t)v;
        return true;
    }
    if (strcmp(part, "rslora") == 0)
        return s->rslora = true;
    if (strcmp(part, "dora") == 0)
        return s->dora = true;
    if (strncmp(part, "init=", 5) == 0)
        return ls_error(cx, LS_NOWHERE, LS_E_OPTION, "start from its files by --adapter DIR",
                        "--lora %s: adapters begin with peft's own initial values; '%s' needs the "
                        "weights' decomposition or data",
                        text, part);
    return bad(cx, text, part, "r=, alpha=, dropout=, bias=, seed=, rslora or dora");
}

LsAdapterSpec *ls_adapter_option(LsCtx *cx, const char *text)
{
    LsArena *a = cx->arena;
    LsAdapterSpec *s = ls_arena_alloc(a, 1, sizeof *s);
    char *settings = ls_arena_strdup(a, text), *globs = strchr(settings, ':'), *save = NULL;
    *s = (LsAdapterSpec){.rank = RANK, .alpha = ALPHA};
    if (globs != NULL)
        *globs++ = '\0';
    for (char *p = strtok_r(settings, ",", &save); p != NULL; p = strtok_r(NULL, ",", &save))
        if (!set_part(cx, text, p, s))
            return NULL;
    s->target = ls_arena_alloc(a, strlen(text) + 1, sizeof *s->target);
    for (char *p = globs != NULL ? strtok_r(globs, ",", &save) : NULL; p != NULL;
         p = strtok_r(NULL, ",", &save))
        s->target[s->ntarget++] = p;
    if (globs != NULL && s->ntarget == 0) {
        bad(cx, text, ":", "followed by names of modules");
        return NULL;
    }
    return s;
}

bool ls_adapter_names(const char *target, const char *module)
{
    const size_t n = strlen(target), m = strlen(module);
    return strcmp(target, module) == 0
           || (m > n && module[m - n - 1] == '.' && strcmp(module + m - n, target) == 0)
           || fnmatch(target, module, 0) == 0;
}

static double pattern_of(const LsAdapterPattern *p, uint32_t n, const char *module, double usual)
{
    for (uint32_t k = 0; k < n; k++)
        if (ls_adapter_names(p[k].name, module))
            return p[k].value;
    return usual;
}

int64_t ls_adapter_rank(const LsAdapterSpec *s, const char *module)
{
    return (int64_t)pattern_of(s->rank_of, s->nrank_of, module, (double)s->rank);
}

double ls_adapter_scale(const LsAdapterSpec *s, const char *module)
{
    const double r = (double)ls_adapter_rank(s, module);
    return pattern_of(s->alpha_of, s->nalpha_of, module, s->alpha) / (s->rslora ? sqrt(r) : r);
}
