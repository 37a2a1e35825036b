/* runtime/trainer/export_notes.c -- see export_notes.h. ModelProto.metadata_props is field 14,
 * entries of key (1) and value (2). */
#include "runtime/trainer/export_notes.h"

#include "runtime/base/json_read.h"
#include "runtime/base/proto_field.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { METADATA = LS_PROTO_BYTES(14), KEY = LS_PROTO_BYTES(1), VALUE = LS_PROTO_BYTES(2) };
enum { PART = 512, HEAD = 2 * LS_PROTO_VARINT_MOST, CLASSES = 1 << 20 };
static const char classes_key[] = "lowerset.classes";

typedef struct Bytes {
    unsigned char *at;
    size_t n, room;
    bool failed;
} Bytes;

static void put(void *to, const void *data, size_t n)
{
    Bytes *b = to;
    if (b->failed || n == 0)
        return;
    if (b->n + n > b->room) {
        const size_t room = 2 * (b->n + n) + PART;
        unsigned char *at = realloc(b->at, room);
        b->failed = at == NULL;
        if (at == NULL)
            return;
        b->at = at;
        b->room = room;
    }
    memcpy(b->at + b->n, data, n);
    b->n += n;
}

static void put_bytes(Bytes *b, uint64_t tag, const void *data, size_t n)
{
    unsigned char head[HEAD];
    put(b, head, (size_t)(ls_proto_put_head(head, tag, n) - head));
    put(b, data, n);
}

static void entry(Bytes *to, const char *key, const void *value, size_t n)
{
    Bytes one = {0};
    put_bytes(&one, KEY, key, strlen(key));
    put_bytes(&one, VALUE, value, n);
    to->failed |= one.failed;
    if (!to->failed)
        put_bytes(to, METADATA, one.at, one.n);
    free(one.at);
}

static void text_entry(Bytes *to, const char *key, const char *value)
{
    entry(to, key, value, strlen(value));
}

/* ---- the entries ---- */

/* "x=/home/me/a.npz,b.npy" becomes "x=a.npz,b.npy". */
static void put_data(Bytes *to, const char *spec)
{
    Bytes names = {0};
    for (const char *p = spec; *p != '\0';) {
        const size_t n = strcspn(p, "/,=+");
        if (p[n] != '/')
            put(&names, p, n + (p[n] != '\0'));
        p += n + (p[n] != '\0');
    }
    to->failed |= names.failed;
    if (names.n > 0)
        entry(to, "lowerset.data", names.at, names.n);
    free(names.at);
}

double ls_source_scale(const LsSource *s)
{
    return s->scale != 0 ? s->scale : s->table != NULL ? 1.0 / 255 : 1;
}

static bool is_scaled(const LsDataset *d, uint32_t k)
{
    const LsSource *s = &d->source[k];
    return d->p->input[k].t.type == LS_DT_REAL && !d->p->input[k].is_label
           && (ls_source_scale(s) != 1 || s->mean != NULL);
}

static void put_list(LsText *t, const char *name, const double *v, int64_t n)
{
    for (int64_t k = 0; k < n; k++) {
        ls_text_put(t, k == 0 ? ",\"%s\":[" : ",", name);
        ls_text_number(t, v[k], 17);
    }
    ls_text_put(t, "]");
}

static void put_scaling(Bytes *to, const LsDataset *d)
{
    Bytes json = {0};
    char part[PART];
    LsText t = {part, 0, sizeof part, put, &json};
    int n = 0;
    for (uint32_t k = 0; k < d->p->ninput; k++) {
        const LsSource *s = &d->source[k];
        if (!is_scaled(d, k))
            continue;
        ls_text_put(&t, n++ == 0 ? "{" : ",");
        ls_text_string(&t, d->p->input[k].t.name);
        ls_text_put(&t, ":{\"scale\":");
        ls_text_number(&t, ls_source_scale(s), 17);
        if (s->mean != NULL) {
            put_list(&t, "mean", s->mean, s->channel);
            put_list(&t, "std", s->std, s->channel);
        }
        ls_text_put(&t, "}");
    }
    ls_text_put(&t, n > 0 ? "}" : "");
    ls_text_flush(&t);
    to->failed |= json.failed;
    if (n > 0)
        entry(to, "lowerset.scaling", json.at, json.n);
    free(json.at);
}

/* The model file names its classes already. */
static bool has_classes(const LsProgram *p)
{
    LsProtoBytes file = {p->file.onnx, p->file.onnx + p->file.bytes};
    LsProtoField one, part;
    while (ls_proto_next(&file, &one))
        while (one.tag == METADATA && ls_proto_next(&one.held, &part))
            if (part.tag == KEY && ls_proto_equals(part.held, classes_key))
                return true;
    return false;
}

static void put_classes(Bytes *to, const LsProgram *p, const LsClassNames *c)
{
    Bytes json = {0};
    char part[PART];
    LsText t = {part, 0, sizeof part, put, &json};
    if (c->n == 0 || has_classes(p))
        return;
    for (int64_t k = 0; k < c->n; k++) {
        ls_text_put(&t, k == 0 ? "[" : ",");
        ls_text_string(&t, c->name[k]);
    }
    ls_text_put(&t, "]");
    ls_text_flush(&t);
    to->failed |= json.failed;
    if (json.n <= CLASSES)      /* so that a model in two files stays below the limit of one */
        entry(to, classes_key, json.at, json.n);
    free(json.at);
}

static LsProtoBytes find_classes(const LsProgram *p)
{
    LsProtoBytes file = {p->file.onnx, p->file.onnx + p->file.bytes};
    LsProtoField one, part;
    while (ls_proto_next(&file, &one)) {
        LsProtoBytes key = {0}, value = {0};
        while (one.tag == METADATA && ls_proto_next(&one.held, &part)) {
            key = part.tag == KEY ? part.held : key;
            value = part.tag == VALUE ? part.held : value;
        }
        if (key.p != NULL && value.p != NULL && ls_proto_equals(key, classes_key))
            return value;
    }
    return (LsProtoBytes){0};
}

LsClassNames ls_notes_classes(const LsProgram *p, void **room)
{
    const LsProtoBytes text = find_classes(p);
    const size_t n = text.p != NULL ? ls_proto_size(text) : 0;
    LsJson j = {(const char *)text.p, (const char *)text.end};
    LsClassNames none = {0};
    int64_t count = 0;
    *room = NULL;
    /* A name takes its quotes and a comma at least. */
    const char **name = n > 0 ? malloc((n / 2 + 1) * sizeof *name + n + 1) : NULL;
    if (name == NULL || !ls_json_char(&j, '['))
        return free(name), none;
    char *at = (char *)(name + n / 2 + 1);
    do {
        if (!ls_json_string(&j, at, n + 1 - (size_t)(at - (char *)(name + n / 2 + 1))))
            return free(name), none;
        name[count++] = at;
        at += strlen(at) + 1;
    } while (ls_json_char(&j, ','));
    if (!ls_json_char(&j, ']') || count != p->target.classes)
        return free(name), none;
    *room = name;
    return (LsClassNames){count, name};
}

bool ls_notes_make(LsNotes *to, const LsProgram *p, int64_t steps, const LsDataset *d,
                   LsError *e)
{
    Bytes all = {0};
    char number[24];
    if (p->about.version != NULL)
        text_entry(&all, "lowerset.version", p->about.version);
    text_entry(&all, "lowerset.plan", p->about.plan_hash);
    text_entry(&all, "lowerset.loss", p->about.loss);
    snprintf(number, sizeof number, "%" PRId64, steps);
    text_entry(&all, "lowerset.steps", number);
    if (d->p != NULL) {
        put_data(&all, d->opt.data);
        put_scaling(&all, d);
        put_classes(&all, p, &d->classes);
    }
    *to = (LsNotes){all.at, all.failed ? 0 : all.n};
    return !all.failed || ls_fail(e, LS_EXIT_FAIL, "no memory for --export");
}

void ls_notes_free(LsNotes *n)
{
    free(n->bytes);
    *n = (LsNotes){0};
}
