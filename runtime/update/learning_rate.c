/* runtime/update/learning_rate.c -- see learning_rate.h. Cosine: Loshchilov and Hutter 2017,
 * without restarts. */
#include "runtime/update/learning_rate.h"

#include "runtime/base/number.h"

#include <float.h>
#include <math.h>
#include <string.h>

bool ls_rate_is_lr(double lr) { return lr >= 0 && lr <= FLT_MAX; }

bool ls_rate_parse_lr(const char *text, double *lr)
{
    return ls_number_real(text, 0, FLT_MAX, lr);
}

static bool setting(LsRate *r, const char *p, size_t n)
{
    enum { MOST = 1 << 30 };    /* updates */
    char text[64];
    if (n >= sizeof text)
        return false;
    memcpy(text, p, n);
    text[n] = '\0';
    char *value = strchr(text, '=');
    if (!value)
        return false;
    *value++ = '\0';
    if (strcmp(text, "warmup") == 0)
        return ls_number_whole(value, 0, MOST, &r->warmup);
    if (strcmp(text, "every") == 0 && r->kind == LS_RATE_STEP)
        return ls_number_whole(value, 1, MOST, &r->every);
    if (strcmp(text, "gamma") == 0 && r->kind == LS_RATE_STEP)
        return ls_number_real(value, 0, FLT_MAX, &r->gamma);
    return strcmp(text, "min") == 0 && r->kind >= LS_RATE_LINEAR
           && ls_number_real(value, 0, 1, &r->least);
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
    if (r->kind == LS_RATE_RISING)
        return r->lr * pow(r->gamma, (double)(at - r->every) / (double)(r->total - 1));
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
