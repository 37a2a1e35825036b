/* cli/options/loss_spec.c -- see loss_spec.h. */
#include "cli/options/loss_spec.h"

#include "compiler/passes/loss_term.h"
#include "runtime/base/number.h"

#include <float.h>
#include <string.h>

static const struct {
    const char *word, *setting;         /* the setting's name; NULL: none */
    double least;
    const char *about;
} kind[LS_NLOSSES] = {
    [LS_LOSS_GRAPH] = {"graph", NULL, 0, "an output of one element, which the model computes"},
    [LS_LOSS_CE] = {"ce", NULL, 0, "cross-entropy of scores, with labels"},
    [LS_LOSS_MSE] = {"mse", NULL, 0, "squared error"},
    [LS_LOSS_L1] = {"l1", NULL, 0, "absolute error"},
    [LS_LOSS_BCE] = {"bce", NULL, 0, "binary cross-entropy of scores (logits)"},
    [LS_LOSS_NLL] = {"nll", NULL, 0, "likelihood of log-probabilities, with labels"},
    [LS_LOSS_KL] = {"kl", NULL, 0,
                    "divergence of log-probabilities from target probabilities, a sum per sample"},
    [LS_LOSS_SMOOTH_L1] = {"smooth_l1", "beta", 0,
                           "squared error below beta, absolute error beyond"},
    [LS_LOSS_HUBER] = {"huber", "delta", FLT_MIN, "smooth_l1 times delta"},
    [LS_LOSS_SOFT_CE] = {"soft_ce", NULL, 0,
                         "cross-entropy of scores, with a probability for each class"},
    [LS_LOSS_COSINE] = {"cosine", NULL, 0, "1 - cos(output, target), vectors NxD"},
    [LS_LOSS_TRIPLET] = {"triplet", "margin", FLT_MIN,
                         "distances of an anchor: OUTPUT is ANCHOR,POSITIVE,NEGATIVE; no target"},
};

const char *ls_loss_word(LsLossKind k) { return kind[k].word; }

void ls_loss_help(FILE *to)
{
    for (int k = LS_LOSS_CE; k < LS_NLOSSES; k++)
        fprintf(to, "    %-10s %s%s%s%s\n", kind[k].word, kind[k].about,
                kind[k].setting != NULL ? "; " : "", kind[k].setting != NULL ? kind[k].setting : "",
                kind[k].setting != NULL ? "=1" : "");
    fprintf(to, "    %-10s %s\n", kind[LS_LOSS_GRAPH].word, kind[LS_LOSS_GRAPH].about);
}

typedef struct Reader {
    char *at;                   /* the rest; words are ended by writing '\0' over what follows
                                 * them */
    char end;                   /* what followed the last word: ':' '@' ',' '\0' */
    char *why;
    size_t size;
} Reader;

static char *word(Reader *r, const char *ends)
{
    char *start = r->at, *end = start + strcspn(start, ends);
    r->end = *end;
    r->at = *end != '\0' ? end + 1 : end;
    *end = '\0';
    return start;
}

/* Takes "NAME=NUMBER" of this kind, or a weight. */
static bool read_setting(Reader *r, const char *text, LsLossPart *p, unsigned *given)
{
    const char *name = kind[p->kind].setting, *equal = strchr(text, '=');
    const unsigned bit = equal != NULL ? 2 : 1;
    double *to = equal != NULL ? &p->setting : &p->weight;
    if (equal != NULL
        && (name == NULL || strlen(name) != (size_t)(equal - text)
            || strncmp(text, name, strlen(name)) != 0))
        snprintf(r->why, r->size, "%s takes no '%.*s'%s%s", kind[p->kind].word, (int)(equal - text),
                 text, name != NULL ? "; it takes " : "", name != NULL ? name : "");
    else if ((*given & bit) != 0)
        snprintf(r->why, r->size, "%s has two of '%s'", kind[p->kind].word,
                 equal != NULL ? name : "@WEIGHT");
    else if (!ls_number_real(equal != NULL ? equal + 1 : text,
                             equal != NULL ? kind[p->kind].least : -FLT_MAX, FLT_MAX, to)
             || (equal == NULL && *to == 0))
        snprintf(r->why, r->size, "'%s' is not %s", equal != NULL ? equal + 1 : text,
                 equal == NULL             ? "a weight, a number other than 0"
                 : kind[p->kind].least > 0 ? "a number above 0"
                                           : "a number of at least 0");
    else {
        *given |= bit;
        return true;
    }
    return false;
}

/* "NAME=NUMBER", which no exporter calls an output. */
static bool is_setting(const char *text)
{
    const char *equal = strchr(text, '=');
    double v;
    return equal != NULL && ls_number_real(equal + 1, -DBL_MAX, DBL_MAX, &v);
}

static bool read_outputs(Reader *r, LsLossPart *p, unsigned *given)
{
    const int n = ls_loss_reads(p->kind);
    for (int k = 0; k < n; k++) {
        char *name = word(r, "@,");
        if (k == 0 && n == 1 && is_setting(name))
            return read_setting(r, name, p, given);
        if (*name == '\0' || (k + 1 < n && r->end != ','))
            return snprintf(r->why, r->size, "%s takes %s", kind[p->kind].word,
                            n > 1 ? "three outputs: ANCHOR,POSITIVE,NEGATIVE"
                                  : "an output after ':'"),
                   false;
        p->output[k] = name;
    }
    return true;
}

static bool read_part(Reader *r, LsLossPart *p)
{
    const char *name = word(r, ":@,");
    unsigned given = 0;
    int k = 0;
    while (k < LS_NLOSSES && strcmp(kind[k].word, name) != 0)
        k++;
    if (k == LS_NLOSSES) {
        size_t n = (size_t)snprintf(r->why, r->size, "'%s' is not one of", name);
        for (k = LS_LOSS_CE; k <= LS_NLOSSES && n < r->size; k++)
            n += (size_t)snprintf(r->why + n, r->size - n, " %s", kind[k % LS_NLOSSES].word);
        return false;
    }
    *p = (LsLossPart){.kind = (LsLossKind)k, .weight = 1, .setting = 1};
    if (r->end == ':' && !read_outputs(r, p, &given))
        return false;
    while (r->end == '@')
        if (!read_setting(r, word(r, "@,"), p, &given))
            return false;
    return p->kind != LS_LOSS_TRIPLET || p->output[2] != NULL
           || (snprintf(r->why, r->size,
                        "triplet takes three outputs: triplet:ANCHOR,POSITIVE,NEGATIVE"),
               false);
}

bool ls_loss_parse(struct LsArena *arena, const char *text, LsLossOptions *o, char *why,
                   size_t size)
{
    size_t most = 1;
    for (const char *c = text; *c != '\0'; c++)
        most += *c == ',';
    LsLossPart *part = ls_arena_alloc(arena, most, sizeof *part);
    Reader r = {.at = ls_arena_printf(arena, "%s", text), .end = ',', .why = why, .size = size};
    o->npart = 0;
    while (r.end == ',')
        if (!read_part(&r, &part[o->npart++]))
            return false;
    o->part = part;
    return true;
}
