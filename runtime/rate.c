/* runtime/rate.c -- see rate.h. Cosine: Loshchilov and Hutter 2017, without restarts. */
#include "runtime/rate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool setting(LsRate *r, const char *p, size_t n)
{
    const char *equal = memchr(p, '=', n);
    char *end;
    if (!equal)
        return false;
    size_t name = (size_t)(equal - p);
    double v = strtod(equal + 1, &end);
    bool whole = v <= 0x1p53 && v == floor(v);
    if (end != p + n || end == equal + 1 || !(v >= 0) || isinf(v))
        return false;
    if (name == 6 && memcmp(p, "warmup", 6) == 0 && whole)
        r->warmup = (int64_t)v;
    else if (name == 5 && memcmp(p, "every", 5) == 0 && whole && v >= 1 && r->kind == LS_RATE_STEP)
        r->every = (int64_t)v;
    else if (name == 5 && memcmp(p, "gamma", 5) == 0 && r->kind == LS_RATE_STEP)
        r->gamma = v;
    else if (name == 3 && memcmp(p, "min", 3) == 0 && v <= 1 && r->kind >= LS_RATE_LINEAR)
        r->least = v;
    else
        return false;
    return true;
}

bool ls_rate_parse(LsRate *r, const char *text, double lr, int64_t total, LsError *e)
{
    static const char *const kind[] = {"constant", "step", "linear", "cosine"};
    const char *p = text + strcspn(text, ":");
    size_t n = (size_t)(p - text);
    int k = 0;
    while (k < 4 && !(strlen(kind[k]) == n && memcmp(kind[k], text, n) == 0))
        k++;
    *r = (LsRate){.kind = (LsRateKind)k, .lr = lr, .gamma = 0.1, .every = 0, .total = total};
    bool ok = k < 4;
    while (ok && *p) {
        p++;
        n = strcspn(p, ",");
        ok = setting(r, p, n);
        p += n;
    }
    if (ok && r->kind == LS_RATE_STEP && r->every == 0)
        return ls_fail(e, LS_EXIT_USAGE, "--schedule=%s: step needs every=UPDATES", text);
    return ok ? true
              : ls_fail(e, LS_EXIT_USAGE,
                        "--schedule=%s: constant, linear, cosine[:min=F] or "
                        "step:every=N,gamma=F; each with warmup=N",
                        text);
}

double ls_rate_at(const LsRate *r, int64_t update)
{
    int64_t at = update - 1;
    if (at < r->warmup)
        return r->lr * (double)(at + 1) / (double)r->warmup;
    double span = (double)(r->total - r->warmup);
    double done = span > 0 ? fmin((double)(at - r->warmup) / span, 1) : 0;
    switch (r->kind) {
    case LS_RATE_STEP: return r->lr * pow(r->gamma, (double)(at / r->every));
    case LS_RATE_LINEAR: return r->lr * (1 - (1 - r->least) * done);
    case LS_RATE_COSINE: return r->lr * (r->least + (1 - r->least) * 0.5 * (1 + cos(M_PI * done)));
    default: return r->lr;
    }
}
