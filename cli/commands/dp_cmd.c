/* cli/commands/dp_cmd.c -- lowerset dp: what private training would guarantee, or how much noise a
 * guarantee takes. */
#include "base/json_text.h"
#include "cli/commands/commands.h"
#include "cli/options/options.h"
#include "runtime/privacy/ledger_text.h"
#include "cli/options/option_values.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>

typedef struct Question {
    double rate, noise, delta, epsilon;     /* noise, epsilon: one is given */
    int64_t steps;
    bool search;                /* for the noise */
} Question;

static int fail(const char *why)
{
    fprintf(stderr, "lowerset dp: %s\n", why);
    return LS_EXIT_USAGE;
}

/* Sampling rate and steps: as given, or those of `epochs` over `samples` by batches of `batch` on
 * average. */
static int sampling(const LsOptions *o, Question *q)
{
    const bool counted = o->dp.samples > 0 || o->dp.batch > 0 || o->dp.epochs > 0;
    const bool direct = o->dp.sample_rate != NULL || o->dp.steps > 0;
    if (counted == direct || (direct && (o->dp.sample_rate == NULL || o->dp.steps == 0))
        || (counted && (o->dp.samples == 0 || o->dp.batch == 0 || o->dp.epochs == 0)))
        return fail("give --sample-rate and --steps, or else --samples, --batch and --epochs");
    if (direct) {
        q->steps = o->dp.steps;
        return ls_options_real("--sample-rate", o->dp.sample_rate, 0, 1, &q->rate);
    }
    if (o->dp.batch > o->dp.samples) {
        fprintf(stderr, "lowerset dp: --batch %" PRId64 " is more than all %" PRId64 " --samples\n",
                o->dp.batch, o->dp.samples);
        return LS_EXIT_USAGE;
    }
    q->rate = (double)o->dp.batch / (double)o->dp.samples;
    q->steps = o->dp.epochs * ((o->dp.samples + o->dp.batch - 1) / o->dp.batch);
    return 0;
}

static int ask(const LsOptions *o, Question *q)
{
    int code = sampling(o, q);
    if (code == 0 && (o->dp.noise == NULL) == (o->dp.epsilon == NULL))
        code = fail("give --noise, or --epsilon to search for the noise");
    if (code == 0 && o->dp.delta == NULL)
        code = fail("give --delta: it should be well below 1 / samples");
    q->search = o->dp.epsilon != NULL;
    code = code != 0 ? code : ls_options_real("--noise", o->dp.noise, 0, FLT_MAX, &q->noise);
    code = code != 0 ? code : ls_options_real("--epsilon", o->dp.epsilon, 0, FLT_MAX, &q->epsilon);
    code = code != 0 ? code : ls_options_real("--delta", o->dp.delta, 0, 1, &q->delta);
    if (code == 0 && !(q->delta > 0 && q->delta < 1))
        code = fail("--delta must be above 0 and below 1");
    if (code == 0 && o->dp.samples > 0 && q->delta * (double)o->dp.samples >= 1)
        fprintf(stderr,
                "lowerset dp: warning: with this --delta a program that publishes one of %" PRId64
                " samples unchanged would pass; take one well below %.2g\n",
                o->dp.samples, 1 / (double)o->dp.samples);
    return code;
}

/* Fills in the noise, if it is searched, and the bound. */
static int answer(Question *q, LsPrivacyBound *b)
{
    char why[LS_PRIVACY_WHY];
    LsPrivacyLedger l = {0};
    bool ok =
        !q->search || ls_privacy_noise(q->rate, q->steps, q->delta, q->epsilon, &q->noise, why);
    ok = ok && ls_privacy_add(&l, q->rate, q->noise, q->steps, why);
    if (ok)
        *b = ls_privacy_epsilon(&l, q->delta);
    ls_privacy_free(&l);
    return ok ? 0 : fail(why);
}

static void print_json(const Question *q, const LsPrivacyBound *b)
{
    printf("{\"schema\": 1, \"steps\": %" PRId64, q->steps);
    ls_json_number(stdout, "sample_rate", q->rate);
    ls_json_number(stdout, "noise", q->noise);
    ls_json_number(stdout, "delta", q->delta);
    ls_json_number(stdout, "epsilon", b->epsilon);
    ls_json_number(stdout, "order", b->order > 0 ? b->order : INFINITY);
    printf("}\n");
}

static void print_words(const Question *q, const LsPrivacyBound *b)
{
    if (q->search)
        printf("noise %.4f: ", q->noise);
    char bound[LS_PRIVACY_WHY];
    printf("%s\n", ls_privacy_bound_text(*b, q->delta, bound));
    printf("  sample rate  %-10.6g  part of the samples in a batch, drawn by Poisson sampling\n",
           q->rate);
    printf("  noise        %-10.6g  deviation, in clipping norms\n", q->noise);
    printf("  steps        %-10" PRId64 "  updates\n", q->steps);
}

int ls_dp_main(int argc, char **argv)
{
    LsOptions o = {0};
    Question q = {0};
    LsPrivacyBound b;
    int code = ls_options_parse(&o, LS_CMD_DP, argc, argv);
    code = code != 0 ? code : ask(&o, &q);
    code = code != 0 ? code : answer(&q, &b);
    if (code == 0)
        (o.reports.json ? print_json : print_words)(&q, &b);
    return code;
}
