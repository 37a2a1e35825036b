/* runtime/checkpoint/checkpoint.c -- see checkpoint.h. The format: a 64-bit length, a JSON header
 * of that length with dtype, shape and data_offsets of every tensor, the data (github
 * huggingface/safetensors). */
#include "runtime/base/fnv64.h"
#include "runtime/base/json_read.h"
#include "runtime/base/tensor_copy.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/checkpoint/safetensors_out.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PART = 1 << 14 };        /* bytes converted at a time */
static const size_t HEADER_MAX = 100 << 20;     /* limit of the format's own reader */

static int64_t bytes_of(const LsMemory *m, const LsStateTensor *s)
{
    return ls_tensor_bytes(&s->t, m->p->real_bytes);
}

/* The format's word for a tensor's type. */
static const char *dtype(const LsMemory *m, const LsStateTensor *s)
{
    return s->t.type == LS_DT_U8     ? "U8"
           : s->t.type == LS_DT_BF16 ? "BF16"
           : m->p->real_bytes == 8 ? "F64" : "F32";
}

const char *ls_checkpoint_precision(const LsProgram *p)
{
    return p->about.precision != NULL ? p->about.precision : p->real_bytes == 8 ? "f64" : "f32";
}

/* Sums within an update are not saved: checkpoints come between updates. Frozen weights may be
 * left out. */
static bool may_be_saved(const LsStateTensor *s) { return s->kind != LS_STATE_SUM; }
static bool is_frozen(const LsStateTensor *s) { return s->kind == LS_STATE_FROZEN; }
static bool is_trained(const LsStateTensor *s) { return may_be_saved(s) && !is_frozen(s); }

typedef bool (*Which)(const LsStateTensor *s);

static Which saved(const LsPlace *at) { return at->keeps_frozen ? may_be_saved : is_trained; }

static bool has_frozen(const LsProgram *p)
{
    for (uint32_t k = 0; k < p->nstate; k++)
        if (is_frozen(&p->state[k]))
            return true;
    return false;
}

/* The format keeps the name __metadata__ for itself. A tensor of that name is stored as
 * ___metadata__, one of that name as ____metadata__, and so on: this is what precedes the name of a
 * tensor in the file. */
static const char *before_name(const char *name)
{
    static const char kept[] = "__metadata__";
    const size_t bars = strspn(name, "_");
    return bars >= 2 && strcmp(name + bars - 2, kept) == 0 ? "_" : "";
}

static bool is_stored_as(const char *name, const char *stored)
{
    const size_t n = strlen(before_name(name));
    return strncmp(stored, "_", n) == 0 && strcmp(stored + n, name) == 0;
}

/* ---- writing ---- */

/* Calls put with the data of these tensors in ONNX's order, part by part. */
static void each_part(const LsMemory *m, Which which,
                      void (*put)(void *to, const void *data, size_t n), void *to)
{
    char part[PART];
    for (uint32_t k = 0; k < m->p->nstate; k++) {
        const LsTensor *t = &m->p->state[k].t;
        const int64_t size = ls_data_bytes(t->type, m->p->real_bytes);
        if (!which(&m->p->state[k]))
            continue;
        LsWalk w = ls_walk_start(t);
        const void *at = ls_memory_view(m, t->at, bytes_of(m, &m->p->state[k]));
        for (int64_t left = ls_tensor_count(t), n; left > 0; left -= n) {
            n = left < PART / size ? left : PART / size;
            ls_walk_read(&w, at, part, n, size);
            put(to, part, (size_t)(n * size));
        }
    }
}

/* The text of the ledger is what is summed up: it is exact, and has no padding. */
static uint64_t sum_ledger(uint64_t sum, const LsPlace *at)
{
    char text[LS_PRIVACY_WHY];
    for (int k = 0; k < at->ledger.n; k++) {
        ls_privacy_run_text(&at->ledger.run[k], text);
        sum = ls_fnv64(sum, text, strlen(text));
    }
    return at->ledger.n > 0 ? ls_fnv64(sum, &at->seeded, sizeof at->seeded) : sum;
}

/* The checksum of a checkpoint without a precision, an alphabet, facts of data and private updates
 * is that of older versions. */
static uint64_t sum_place(const LsPlace *at, const char *precision)
{
    uint64_t sum = ls_fnv64(LS_FNV64, at, offsetof(LsPlace, alphabet));
    sum = ls_fnv64(sum, precision, strlen(precision));
    if (ls_alphabet_count(&at->alphabet) > 0)
        sum = ls_fnv64(sum, &at->alphabet, sizeof at->alphabet);
    if (at->facts != NULL)
        sum = ls_fnv64(sum, at->facts, strlen(at->facts));
    char habits[LS_HABITS_TEXT];
    ls_habits_text(&at->habits, habits);
    return sum_ledger(ls_fnv64(sum, habits, strlen(habits)), at);
}

static void put_sum(void *to, const void *data, size_t n)
{
    uint64_t *sum = to;
    *sum = ls_fnv64(*sum, data, n);
}

static void put_file(void *to, const void *data, size_t n) { ls_out_write(to, data, n); }

static void put_ledger(LsText *t, const LsPlace *at)
{
    char text[LS_PRIVACY_WHY];
    if (at->ledger.n == 0)
        return;
    ls_text_put(t, ",\"noise_seeded\":\"%" PRId64 "\",\"privacy\":\"", at->seeded);
    for (int k = 0; k < at->ledger.n; k++)
        ls_text_put(t, "%s%s", k > 0 ? ";" : "", ls_privacy_run_text(&at->ledger.run[k], text));
    ls_text_put(t, "\"");
}

static uint64_t sum_frozen(const LsMemory *m)
{
    uint64_t sum = LS_FNV64;
    each_part(m, is_frozen, put_sum, &sum);
    return sum;
}

static void put_metadata(LsText *t, const LsMemory *m, const LsPlace *at)
{
    uint64_t sum = sum_place(at, ls_checkpoint_precision(m->p));
    char alphabet[LS_ALPHABET_TEXT];
    each_part(m, saved(at), put_sum, &sum);
    ls_text_put(t, "{\"__metadata__\":{\"format\":\"lowerset-1\",\"model\":");
    ls_text_string(t, m->p->about.model);
    ls_text_put(t, ",\"plan\":");
    ls_text_string(t, m->p->about.plan_hash);
    ls_text_put(t, ",\"precision\":\"%s\"", ls_checkpoint_precision(m->p));
    if (ls_alphabet_count(&at->alphabet) > 0) {
        ls_text_put(t, ",\"alphabet\":");
        ls_text_string(t, ls_alphabet_text(&at->alphabet, alphabet));
    }
    if (at->facts != NULL) {
        ls_text_put(t, ",\"data\":");
        ls_text_string(t, at->facts);
    }
    put_ledger(t, at);
    char habits[LS_HABITS_TEXT];
    if (ls_habits_text(&at->habits, habits)[0] != '\0')
        {
        ls_text_put(t, ",\"habits\":");
        ls_text_string(t, habits);
    }
    if (!at->keeps_frozen && has_frozen(m->p))
        ls_text_put(t, ",\"frozen\":\"%" PRIu64 "\"", sum_frozen(m));
    ls_text_put(t,
                ",\"update\":\"%" PRId64 "\",\"cursor\":\"%" PRId64 "\",\"epoch\":\"%" PRId64
                "\",\"samples\":\"%" PRId64 "\",\"seed\":\"%" PRIu64 "\",\"drop_last\":\"%" PRId64
                "\",\"shuffle\":\"%" PRId64 "\",\"checksum\":\"%" PRIu64 "\"}",
                at->update, at->cursor, at->epoch, at->samples, at->seed, at->drop_last,
                at->shuffle, sum);
}

static void put_header(LsOut *o, const LsMemory *m, const LsPlace *at)
{
    char text[2048];
    LsText t = {text, 0, sizeof text, put_file, o};
    int64_t offset = 0;
    put_metadata(&t, m, at);
    for (uint32_t k = 0; k < m->p->nstate; k++) {
        const LsStateTensor *s = &m->p->state[k];
        if (!saved(at)(s))
            continue;
        ls_text_put(&t, ",\"%s", before_name(s->t.name));
        ls_text_escaped(&t, s->t.name);
        ls_text_put(&t, "\":{\"dtype\":\"%s\",\"shape\":[", dtype(m, s));
        int64_t dim[LS_TENSOR_RANK + 1];
        for (int d = 0, rank = ls_tensor_dims(&s->t, dim); d < rank; d++)
            ls_text_put(&t, "%s%" PRId64, d ? "," : "", dim[d]);
        ls_text_put(&t, "],\"data_offsets\":[%" PRId64 ",%" PRId64 "]}", offset,
                    offset + bytes_of(m, s));
        offset += bytes_of(m, s);
    }
    ls_text_put(&t, "}");
    ls_text_flush(&t);
}

static bool write_to(LsOut *o, const LsMemory *m, const LsPlace *at, LsError *e)
{
    ls_safetensors_begin(o);
    put_header(o, m, at);
    ls_safetensors_end_header(o);
    each_part(m, saved(at), put_file, o);
    return ls_safetensors_commit(o, m, e);
}

bool ls_checkpoint_save(const LsMemory *m, const LsPlace *at, const char *path, LsError *e)
{
    LsOut o;
    return ls_out_open(&o, path, e) && write_to(&o, m, at, e);
}

bool ls_checkpoint_save_to(const LsMemory *m, const LsPlace *at, void *to, size_t room,
                           int64_t *bytes, LsError *e)
{
    LsOut o;
    ls_out_open_memory(&o, to, room);
    const bool ok = write_to(&o, m, at, e);
    *bytes = o.at;
    return ok;
}

/* ---- reading ---- */

typedef struct LsLoaded {
    const LsMemory *m;
    const LsFile *f;
    const unsigned char *data;  /* behind the header */
    int64_t bytes;              /* of the data */
    int64_t *offset;            /* of each state tensor; -1: not seen */
    int64_t next;               /* where the next tensor begins */
    LsPlace place;
    uint64_t checksum, frozen;
    bool ours, has_sum, has_frozen;
    size_t room;                /* size of each of these buffers: no string of the header is
                                 * longer */
    char *name, *key, *value;
} LsLoaded;

static bool damaged(const LsFile *f, LsError *e)
{
    return ls_fail(e, LS_EXIT_DATA, "%s: damaged checkpoint (its header cannot be read)", f->path);
}

static bool read_metadata(LsLoaded *l, LsJson *j)
{
    const char *key = l->key, *value = l->value;
    struct { const char *name; int64_t *to; } field[] = {
        {"update", &l->place.update}, {"cursor", &l->place.cursor}, {"epoch", &l->place.epoch},
        {"samples", &l->place.samples}, {"drop_last", &l->place.drop_last},
        {"shuffle", &l->place.shuffle}, {"noise_seeded", &l->place.seeded},
    };
    char why[LS_PRIVACY_WHY];
    if (!ls_json_char(j, '{'))
        return false;
    do {
        if (!ls_json_string(j, l->key, l->room) || !ls_json_char(j, ':')
            || !ls_json_string(j, l->value, l->room))
            return false;
        for (size_t k = 0; k < sizeof field / sizeof field[0]; k++)
            if (strcmp(key, field[k].name) == 0)
                *field[k].to = strtoll(value, NULL, 10);
        if (strcmp(key, "seed") == 0)
            l->place.seed = strtoull(value, NULL, 10);
        if (strcmp(key, "checksum") == 0) {
            l->checksum = strtoull(value, NULL, 10);
            l->has_sum = true;
        }
        if (strcmp(key, "frozen") == 0) {
            l->frozen = strtoull(value, NULL, 10);
            l->has_frozen = true;
        }
        if (strcmp(key, "precision") == 0)
            snprintf(l->place.precision, sizeof l->place.precision, "%s", value);
        if (strcmp(key, "alphabet") == 0
            && !ls_alphabet_parse(&l->place.alphabet, value, strlen(value)))
            return false;
        if (strcmp(key, "habits") == 0 && !ls_habits_parse(&l->place.habits, value))
            return false;
        if (strcmp(key, "data") == 0
            && (l->place.facts != NULL || (l->place.facts = strdup(value)) == NULL))
            return false;
        if (strcmp(key, "privacy") == 0 && !ls_privacy_read(&l->place.ledger, value, why))
            return false;
        l->ours |= strcmp(key, "format") == 0 && strcmp(value, "lowerset-1") == 0;
    } while (ls_json_char(j, ','));
    return ls_json_char(j, '}');
}

typedef struct LsEntry {
    char dtype[16];
    int rank;
    int64_t dim[LS_TENSOR_RANK + 1], from, to;
} LsEntry;

static bool read_entry(const LsLoaded *l, LsEntry *t, LsJson *j)
{
    const char *key = l->key;
    *t = (LsEntry){.from = -1, .to = -1};
    if (!ls_json_char(j, '{'))
        return false;
    do {
        if (!ls_json_string(j, l->key, l->room) || !ls_json_char(j, ':'))
            return false;
        bool ok;
        if (strcmp(key, "dtype") == 0) {
            ok = ls_json_string(j, t->dtype, sizeof t->dtype);
        } else if (strcmp(key, "shape") == 0) {
            ok = ls_json_char(j, '[');
            if (ok && ls_json_char(j, ']'))
                continue;
            do {
                ok = ok && t->rank <= LS_TENSOR_RANK && ls_json_int(j, &t->dim[t->rank++]);
            } while (ok && ls_json_char(j, ','));
            ok = ok && ls_json_char(j, ']');
        } else if (strcmp(key, "data_offsets") == 0) {
            ok = ls_json_char(j, '[') && ls_json_int(j, &t->from) && ls_json_char(j, ',')
                 && ls_json_int(j, &t->to) && ls_json_char(j, ']');
        } else {
            ok = ls_json_skip(j);
        }
        if (!ok)
            return false;
    } while (ls_json_char(j, ','));
    return ls_json_char(j, '}');
}

/* Why the state may be another one. */
static const char *another(const LsLoaded *l, char text[96])
{
    const char *was = l->place.precision;
    if (was[0] == '\0' || strcmp(was, ls_checkpoint_precision(l->m->p)) == 0)
        return "another model or optimizer?";
    snprintf(text, 96, "it was written by a program that computes in %s", was);
    return text;
}

static bool other_type(const LsLoaded *l, const char *name, const LsEntry *t,
                       const LsStateTensor *s, LsError *e)
{
    if (s->t.type != LS_DT_REAL || strcmp(t->dtype, "U8") == 0 || strcmp(t->dtype, "BF16") == 0)
        return ls_fail(e, LS_EXIT_DATA, "%s: '%s' is %s, in this program it is %s (%s)",
                       l->f->path, name, t->dtype, dtype(l->m, s), "another optimizer?");
    return ls_fail(e, LS_EXIT_DATA, "%s: '%s' is %s, this program computes in F%d", l->f->path,
                   name, t->dtype, 8 * l->m->p->real_bytes);
}

static bool take_entry(LsLoaded *l, const char *name, const LsEntry *t, LsError *e)
{
    const LsProgram *p = l->m->p;
    char have[96], want[96];
    uint32_t k = 0;
    while (k < p->nstate && !is_stored_as(p->state[k].t.name, name))
        k++;
    if (k == p->nstate)
        return ls_fail(e, LS_EXIT_DATA, "%s: holds '%s', which this program does not have (%s)",
                       l->f->path, name, another(l, have));
    const LsStateTensor *s = &p->state[k];
    if (!may_be_saved(s) && t->from == l->next && t->to >= t->from && t->to <= l->bytes) {
        l->next = t->to;        /* of older versions, which saved sums */
        return true;
    }
    if (strcmp(t->dtype, dtype(l->m, s)) != 0)
        return other_type(l, name, t, s, e);
    int64_t dim[LS_TENSOR_RANK + 1];
    const int rank = ls_tensor_dims(&s->t, dim);
    if (t->rank != rank || memcmp(t->dim, dim, (size_t)rank * sizeof dim[0]) != 0)
        return ls_fail(e, LS_EXIT_DATA, "%s: '%s' is %s, in this program it is %s", l->f->path,
                       name, ls_dims_text(t->rank, t->dim, have),
                       ls_dims_text(rank, dim, want));
    if (t->from < 0 || t->to > l->bytes || t->to - t->from != bytes_of(l->m, s))
        return ls_fail(e, LS_EXIT_DATA, "%s: '%s' lies outside the file (truncated?)", l->f->path,
                       name);
    if (l->offset[k] >= 0 || t->from != l->next)      /* another order would be other values, in
                                                       * silence */
        return ls_fail(e, LS_EXIT_DATA, "%s: damaged checkpoint: '%s' %s", l->f->path, name,
                       l->offset[k] >= 0 ? "is there twice"
                                         : "does not follow the tensor before it");
    l->offset[k] = t->from;
    l->next = t->to;
    return true;
}

static bool read_header(LsLoaded *l, LsJson *j, LsError *e)
{
    LsEntry t;
    char why[96];
    if (!ls_json_char(j, '{'))
        return damaged(l->f, e);
    do {
        if (!ls_json_string(j, l->name, l->room) || !ls_json_char(j, ':'))
            return damaged(l->f, e);
        bool meta = strcmp(l->name, "__metadata__") == 0;
        if (meta ? !read_metadata(l, j) : !read_entry(l, &t, j))
            return damaged(l->f, e);
        if (!meta && !take_entry(l, l->name, &t, e))
            return false;
    } while (ls_json_char(j, ','));
    if (!ls_json_char(j, '}'))
        return damaged(l->f, e);
    for (uint32_t k = 0; k < l->m->p->nstate; k++)
        if (l->offset[k] < 0 && may_be_saved(&l->m->p->state[k])
            && !(l->has_frozen && is_frozen(&l->m->p->state[k])))
            return ls_fail(e, LS_EXIT_DATA, "%s: '%s' is missing (%s)", l->f->path,
                           l->m->p->state[k].t.name, another(l, why));
    return true;
}

static bool verify(const LsLoaded *l, LsError *e)
{
    if (!l->ours || !l->has_sum || l->place.update < 0 || l->place.cursor < 0 || l->place.epoch < 0)
        return ls_fail(e, LS_EXIT_DATA, "%s: a safetensors file, but not a checkpoint of this kind",
                       l->f->path);
    uint64_t sum = sum_place(&l->place, l->place.precision);
    if (ls_fnv64(sum, l->data, (size_t)l->bytes) != l->checksum)
        return ls_fail(e, LS_EXIT_DATA, "%s: damaged checkpoint (its checksum is wrong)",
                       l->f->path);
    if (l->has_frozen && sum_frozen(l->m) != l->frozen)
        return ls_fail(e, LS_EXIT_DATA,
                       "%s: its weights that are not trained are others than this program's, and "
                       "it does not have them: compile the model that it was trained with, or "
                       "save with --save-frozen",
                       l->f->path);
    return true;
}

static bool load(LsLoaded *l, LsError *e)
{
    const LsFile *f = l->f;
    uint64_t length = 0;
    for (int k = 8; k-- > 0 && f->size >= 8;)
        length = length << 8 | f->data[k];
    if (f->size < 8 || length > HEADER_MAX)
        return damaged(f, e);
    if (length > f->size - 8)
        return ls_fail(e, LS_EXIT_DATA, "%s: truncated checkpoint", f->path);
    const char *head = (const char *)f->data + 8;
    LsJson j = {head, head + length};
    l->data = f->data + 8 + length;
    l->bytes = (int64_t)(f->size - 8 - length);
    l->room = (size_t)length + 1;
    l->name = malloc(3 * l->room);
    if (!l->name)
        return ls_fail(e, LS_EXIT_FAIL, "out of memory");
    l->key = l->name + l->room;
    l->value = l->key + l->room;
    bool ok = read_header(l, &j, e) && verify(l, e);
    free(l->name);
    return ok;
}

/* Gives the state the values that were read. */
static void take_values(const LsLoaded *l)
{
    const LsMemory *m = l->m;
    for (uint32_t k = 0; k < m->p->nstate; k++) {
        const LsTensor *t = &m->p->state[k].t;
        if (l->offset[k] < 0)
            continue;
        if (t->at.space == LS_AT_FILE) {        /* in the order of files */
            ls_memory_replace(m, t->at, l->data + l->offset[k], bytes_of(m, &m->p->state[k]));
            continue;
        }
        LsWalk w = ls_walk_start(t);
        ls_walk_write(&w, l->data + l->offset[k],
                      ls_memory_view(m, t->at, bytes_of(m, &m->p->state[k])), ls_tensor_count(t),
                      ls_data_bytes(t->type, m->p->real_bytes));
        ls_memory_store(m, t->at, bytes_of(m, &m->p->state[k]));
    }
}

static bool load_from(const LsMemory *m, LsPlace *at, const LsFile *f, bool look, LsError *e)
{
    LsLoaded l = {.m = m, .f = f};
    l.offset = malloc((m->p->nstate + 1) * sizeof *l.offset);
    for (uint32_t k = 0; l.offset && k < m->p->nstate; k++)
        l.offset[k] = -1;
    bool ok = l.offset ? load(&l, e) : ls_fail(e, LS_EXIT_FAIL, "out of memory");
    if (ok && !look)
        take_values(&l);
    ok = ok && ls_memory_ok(m, e);
    l.place.keeps_frozen = at->keeps_frozen;
    if (ok)
        *at = l.place;
    else
        ls_place_free(&l.place);
    free(l.offset);
    return ok;
}

void ls_place_free(LsPlace *at)
{
    ls_privacy_free(&at->ledger);
    free(at->facts);
    at->facts = NULL;
}

bool ls_checkpoint_look(const LsMemory *m, LsPlace *at, const LsFile *f, LsError *e)
{
    return load_from(m, at, f, true, e);
}

bool ls_checkpoint_load_from(const LsMemory *m, LsPlace *at, const LsFile *f, LsError *e)
{
    return load_from(m, at, f, false, e);
}

bool ls_checkpoint_load(const LsMemory *m, LsPlace *at, const char *path, LsError *e)
{
    LsFile f;
    if (!ls_file_map(&f, path, e))
        return false;
    const bool ok = ls_checkpoint_load_from(m, at, &f, e);
    ls_file_unmap(&f);
    return ok;
}
