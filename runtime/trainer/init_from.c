/* runtime/trainer/init_from.c -- see init_from.h.
 *
 * A name matches itself. What is left over matches where it is the same without the words that
 * PyTorch's wrappers put before names; it must be the only one. */
#include "runtime/trainer/init_from.h"

#include "runtime/base/tensor_copy.h"
#include "runtime/data/weight_files.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN = 6 };             /* names of a kind that the report has */

/* Where a state tensor has its values from. */
typedef struct Match {
    LsWeight *from;             /* NULL: nowhere */
    bool renamed;               /* the names differ */
    bool misfit;                /* it has another shape or type, and is left alone */
} Match;

typedef struct Matching {
    const LsMemory *m;
    const char *path;
    LsWeightFiles w;
    Match *match;               /* by state, then by packed weight */
    uint32_t n;
} Matching;

/* ---- names ---- */

/* Behind the words that wrappers put before a name. */
static const char *bare(const char *name)
{
    static const char *const word[] = {"module.", "_orig_mod.", "base_model.model.", "model.",
                                       "transformer."};
    for (size_t k = 0; k < sizeof word / sizeof *word;) {
        const size_t n = strlen(word[k]);
        const bool there = strncmp(name, word[k], n) == 0 && name[n] != '\0';
        name += there ? n : 0;
        k = there ? 0 : k + 1;
    }
    return name;
}

/* The same name but for such words, and for ".base_layer", which peft adds to weights that have an
 * adapter. */
static bool is_same(const char *file, const char *program)
{
    static const char layer[] = ".base_layer";
    const char *a = bare(file), *b = bare(program), *cut = strstr(a, layer);
    if (strcmp(a, b) == 0)
        return true;
    const size_t n = cut != NULL ? (size_t)(cut - a) : 0;
    return cut != NULL && strncmp(a, b, n) == 0 && strcmp(cut + sizeof layer - 1, b + n) == 0;
}

/* The only unused tensor of that name but for wrappers; NULL: none, or several. */
static LsWeight *find_alike(const LsWeightFiles *w, const char *name)
{
    LsWeight *found = NULL;
    for (int64_t k = 0; k < w->n; k++)
        if (!w->item[k].used && is_same(w->item[k].name, name)) {
            if (found != NULL)
                return NULL;
            found = &w->item[k];
        }
    return found;
}

/* Adapters are found by their name in peft's files, too. */
static const char *adapter_key(const LsProgram *p, uint32_t state)
{
    for (uint32_t k = 0; k < p->adapters.nentry; k++)
        if (p->adapters.entry[k].state == state)
            return p->adapters.entry[k].key;
    return NULL;
}

static bool takes_values(const LsStateTensor *s)
{
    return s->kind == LS_STATE_PARAM || s->kind == LS_STATE_FROZEN || s->kind == LS_STATE_STAT;
}

/* Checkpoints have a mark before a name that the format keeps for itself. */
static LsWeight *find_exact(const Matching *x, uint32_t k)
{
    const char *name = ls_exported(x->m->p, k)->t.name, *key = NULL;
    LsWeight *of = ls_weights_find(&x->w, name);
    if (of == NULL && k < x->m->p->nstate && (key = adapter_key(x->m->p, k)) != NULL)
        of = ls_weights_find(&x->w, key);
    return of;
}

/* ---- shapes ---- */

static bool has_dims(const LsWeight *of, int rank, const int64_t *dim)
{
    return of->rank == rank && memcmp(of->dim, dim, (size_t)rank * sizeof *dim) == 0;
}

/* The whole tensor, or that of one member, which all get. */
static bool fits(const LsWeight *of, const LsTensor *t)
{
    int64_t dim[LS_TENSOR_RANK + 1];
    return of->is_real
           && (has_dims(of, ls_tensor_dims(t, dim), dim) || has_dims(of, t->rank, t->dim));
}

/* ---- matching ---- */

static void set_match(Matching *x, uint32_t k, LsWeight *of, bool renamed)
{
    const LsStateTensor *s = ls_exported(x->m->p, k);
    if (of == NULL)
        return;
    of->used = true;
    x->match[k] = (Match){of, renamed, k >= x->m->p->nstate || !fits(of, &s->t)
                                           || s->t.type == LS_DT_U8};
}

static void find_all(Matching *x)
{
    const LsProgram *p = x->m->p;
    for (int round = 0; round < 2; round++)
        for (uint32_t k = 0; k < x->n; k++) {
            const LsStateTensor *s = ls_exported(p, k);
            if (x->match[k].from == NULL && (k >= p->nstate || takes_values(s)))
                set_match(x, k, round == 0 ? find_exact(x, k) : find_alike(&x->w, s->t.name),
                          round > 0);
        }
}

/* The parameter that an average is of, or -1. */
static int64_t averaged(const LsProgram *p, uint32_t k)
{
    const LsStateTensor *of = &p->state[k];
    for (uint32_t i = 0; i < p->nstate && of->kind == LS_STATE_AVERAGE; i++)
        if (p->state[i].kind == LS_STATE_PARAM && p->state[i].onnx_offset == of->onnx_offset)
            return i;
    return -1;
}

/* An average begins as its parameter, unless the file has both. */
static void find_averages(Matching *x)
{
    const LsProgram *p = x->m->p;
    for (uint32_t k = 0; k < p->nstate; k++) {
        const int64_t of = averaged(p, k);
        if (of < 0)
            continue;
        LsWeight *own = ls_weights_find(&x->w, p->state[k].t.name);
        if (own != NULL && fits(own, &p->state[k].t)) {
            own->used = true;
            x->match[k].from = own;
        } else if (!x->match[of].misfit) {
            x->match[k].from = x->match[of].from;
        }
    }
}

/* Moments and counters of a checkpoint of this kind are no weights. */
static void leave_moments(Matching *x)
{
    for (int64_t k = 0; k < x->w.n; k++) {
        LsWeight *of = &x->w.item[k];
        for (uint32_t i = 0; i < x->m->p->nstate && !of->used; i++)
            of->used = strcmp(of->name, x->m->p->state[i].t.name) == 0;
    }
}

/* ---- values ---- */

static void put(LsDataType type, char *at, double v, int real_bytes)
{
    uint16_t bits;
    if (type == LS_DT_REAL) {
        ls_real_put(at, v, real_bytes);
        return;
    }
    bits = type == LS_DT_F16 ? ls_to_f16(ls_nearest_f16((float)v)).bits
                             : ls_to_bf16(ls_nearest_bf16((float)v)).bits;
    memcpy(at, &bits, 2);
}

/* Mapped weights lie in the order of files. */
static bool take_mapped(const LsMemory *m, const LsStateTensor *s, const LsArray *a, LsError *e)
{
    const int64_t n = ls_tensor_count(&s->t), each = ls_data_bytes(s->t.type, m->p->real_bytes);
    char *to = malloc((size_t)(n * each) + 1);
    if (to == NULL)
        return ls_fail(e, LS_EXIT_FAIL, "out of memory");
    for (int64_t i = 0; i < n; i++)
        put(s->t.type, to + i * each, ls_array_real(a, i % a->count), m->p->real_bytes);
    ls_memory_replace(m, s->t.at, to, n * each);
    free(to);
    return true;
}

static bool take(const LsMemory *m, const LsStateTensor *s, const LsArray *a, LsError *e)
{
    const int64_t n = ls_tensor_count(&s->t), each = ls_data_bytes(s->t.type, m->p->real_bytes);
    if (n == 0)
        return true;
    if (s->t.at.space == LS_AT_FILE)
        return take_mapped(m, s, a, e);
    LsWalk w = ls_walk_start(&s->t);
    char *to = ls_memory_view(m, s->t.at, n * each);
    for (int64_t i = 0; i < n; i++)
        put(s->t.type, to + ls_walk_next(&w) * each, ls_array_real(a, i % a->count),
            m->p->real_bytes);
    ls_memory_store(m, s->t.at, n * each);
    return ls_memory_ok(m, e);
}

static bool take_all(const Matching *x, LsError *e)
{
    for (uint32_t k = 0; k < x->m->p->nstate; k++)
        if (x->match[k].from != NULL && !x->match[k].misfit
            && !take(x->m, &x->m->p->state[k], &x->match[k].from->array, e))
            return false;
    return true;
}

/* ---- the report ---- */

typedef struct Kind { const char *title; int64_t n; char names[600]; size_t fill; } Kind;

__attribute__((format(printf, 2, 3)))
static void note(Kind *k, const char *fmt, ...)
{
    va_list ap;
    if (k->n++ >= SHOWN || k->fill >= sizeof k->names)
        return;
    if (k->n > 1)
        k->fill += (size_t)snprintf(k->names + k->fill, sizeof k->names - k->fill, ", ");
    va_start(ap, fmt);
    if (k->fill < sizeof k->names)
        k->fill += (size_t)vsnprintf(k->names + k->fill, sizeof k->names - k->fill, fmt, ap);
    va_end(ap);
}

static void tell(FILE *to, const Kind *k)
{
    if (to == NULL || k->n == 0)
        return;
    fprintf(to, "  %s: %s", k->title, k->names);
    if (k->n > SHOWN)
        fprintf(to, " and %" PRId64 " more", k->n - SHOWN);
    fprintf(to, "\n");
}

static void note_misfit(Kind *k, const LsStateTensor *s, const LsWeight *of)
{
    char have[96], want[96];
    int64_t dim[LS_TENSOR_RANK + 1];
    if (s->packed != NULL || s->t.type == LS_DT_U8)
        note(k, "%.80s (kept in few bits here: compile the model with those weights)", s->t.name);
    else if (!of->is_real)
        note(k, "%.80s (%s)", s->t.name, of->dtype);
    else
        note(k, "%.80s (%s, here %s)", s->t.name,
             of->rank > LS_WEIGHT_RANK ? "too many axes" : ls_dims_text(of->rank, of->dim, have),
             ls_dims_text(ls_tensor_dims(&s->t, dim), dim, want));
}

/* Whether all of both sides match. */
static bool report(const Matching *x, bool strict, FILE *to, LsError *e)
{
    Kind lacking = {.title = "not in the file"}, other = {.title = "of another shape or type"},
         more = {.title = "only in the file"}, renamed = {.title = "found by another name"};
    int64_t all = 0, matched = 0;
    for (uint32_t k = 0; k < x->n; k++) {
        const LsStateTensor *s = ls_exported(x->m->p, k);
        const Match *of = &x->match[k];
        if (k < x->m->p->nstate && !takes_values(s))
            continue;
        all++;
        if (of->from == NULL)
            note(&lacking, "%.80s", s->t.name);
        else if (of->misfit)
            note_misfit(&other, s, of->from);
        else
            matched++;
        if (of->from != NULL && of->renamed && !of->misfit)
            note(&renamed, "%.80s is %.80s there", s->t.name, of->from->name);
    }
    for (int64_t k = 0; k < x->w.n; k++)
        if (!x->w.item[k].used)
            note(&more, "%.80s", x->w.item[k].name);
    if (to != NULL)
        fprintf(to, "%s: initial values of %" PRId64 " of %" PRId64 " tensors\n", x->path, matched,
                all);
    tell(to, &renamed);
    tell(to, &lacking);
    tell(to, &other);
    tell(to, &more);
    const Kind *wrong = lacking.n > 0 ? &lacking : other.n > 0 ? &other : &more;
    if (matched == 0)
        return ls_fail(e, LS_EXIT_DATA,
                       "--init-from=%s: none of its %" PRId64
                       " tensors has the name and the shape of one of this program's %" PRId64
                       "; %s: %.300s",
                       x->path, x->w.n, all, wrong->title, wrong->names);
    return !strict || wrong->n == 0
           || ls_fail(e, LS_EXIT_DATA, "--init-strict: %s: %s: %.300s", x->path, wrong->title,
                      wrong->names);
}

bool ls_init_from(const LsMemory *m, const char *path, bool strict, FILE *to, LsError *e)
{
    Matching x = {.m = m, .path = path, .n = m->p->nstate + m->p->npacked};
    x.match = calloc(x.n + 1u, sizeof *x.match);
    bool ok = x.match != NULL || ls_fail(e, LS_EXIT_FAIL, "out of memory");
    ok = ok && ls_weights_open(&x.w, path, e);
    if (ok) {
        find_all(&x);
        find_averages(&x);
        leave_moments(&x);
        ok = report(&x, strict, to, e) && take_all(&x, e);
    }
    ls_weights_close(&x.w);
    free(x.match);
    return ok;
}
