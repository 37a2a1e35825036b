/* runtime/trainer/export_external.c -- see export_external.h. Fields of TensorProto and
 * StringStringEntryProto have the numbers of onnx.proto. */
#include "runtime/trainer/export_external.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "runtime/base/proto_field.h"
#include "runtime/base/tensor_copy.h"
#include "runtime/trainer/export_adapter.h"
#include "runtime/trainer/export_values.h"

enum {
    TENSOR_EXTERNAL = LS_PROTO_BYTES(13),
    TENSOR_LOCATION = LS_PROTO_VARINT(14),
    EXTERNAL = 1,
    ENTRY_KEY = LS_PROTO_BYTES(1),
    ENTRY_VALUE = LS_PROTO_BYTES(2),
};
/* Readers map large data, which then begin a page. Small constants stay in the model: readers look
 * at shapes and the like before they look for files. */
enum { LARGE = 1 << 20, PAGE = 4096, ALIGNED = 64, CONSTANT = 1024 };
enum { SLACK = 3 << 20 };       /* bytes of a model that are new: metadata, Casts */

bool ls_export_is_large(const LsProgram *p, LsDataType type)
{
    int64_t bytes = (int64_t)p->file.bytes + SLACK;
    for (uint32_t k = 0; k < p->nstate + p->npacked && type != LS_DT_REAL; k++) {
        const LsStateTensor *s = ls_exported(p, k);
        const int64_t members = s->t.members > 0 ? s->t.members : 1;
        if (ls_is_exported(p, k) && s->kind != LS_STATE_STAT)
            bytes -= 2 * ls_tensor_count(&s->t) / members;
    }
    return bytes > INT32_MAX;
}

/* ---- places ---- */

static bool name_data(LsExternal *x, const char *file, LsError *e)
{
    const char *slash;
    *x = (LsExternal){0};
    if (snprintf(x->path, sizeof x->path, "%s.data", file) >= (int)sizeof x->path)
        return ls_fail(e, LS_EXIT_FAIL, "%s: cannot write: %s", file, strerror(ENAMETOOLONG));
    slash = strrchr(x->path, '/');
    x->location = slash != NULL ? slash + 1 : x->path;
    return true;
}

/* Through a link the model would lie in another folder than its data. */
static bool is_plain(const char *path, LsError *e)
{
    struct stat st;
    return lstat(path, &st) != 0 || S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)
           || ls_fail(e, LS_EXIT_USAGE,
                      "--export: the model becomes two files, the second with its weights, and %s "
                      "is %s: give the name of a file",
                      path, S_ISLNK(st.st_mode) ? "a link" : "a device or a pipe");
}

bool ls_external_check(const char *file, LsError *e)
{
    LsExternal x;
    return name_data(&x, file, e) && is_plain(file, e) && is_plain(x.path, e)
           && ls_out_check(file, e) && ls_out_check(x.path, e);
}

bool ls_external_open(LsExternal *x, const char *file, uint32_t room, LsError *e)
{
    if (!name_data(x, file, e) || !is_plain(file, e) || !is_plain(x->path, e))
        return false;
    x->tensor = calloc(room + 1u, sizeof *x->tensor);
    x->room = room;
    return x->tensor != NULL || ls_fail(e, LS_EXIT_FAIL, "no memory for --export");
}

void ls_external_close(LsExternal *x) { free(x->tensor); }

void ls_external_add(LsExternal *x, const LsExternalTensor *t)
{
    if (x->n == x->room || t->bytes == 0 || (t->state == NULL && t->bytes < CONSTANT))
        return;
    const int64_t align = t->bytes >= LARGE ? PAGE : ALIGNED;
    LsExternalTensor *new = &x->tensor[x->n++];
    *new = *t;
    new->offset = (x->bytes + align - 1) / align * align;
    x->bytes = new->offset + new->bytes;
}

const LsExternalTensor *ls_external_find(const LsExternal *x, const unsigned char *raw)
{
    uint32_t from = 0, to = x->n;
    while (from < to) {
        const uint32_t mid = from + (to - from) / 2;
        if (x->tensor[mid].raw < raw)
            from = mid + 1;
        else
            to = mid;
    }
    return from < x->n && x->tensor[from].raw == raw ? &x->tensor[from] : NULL;
}

/* ---- what FILE says of them ---- */

static unsigned char *put_entry(unsigned char *to, const char *key, const char *value)
{
    unsigned char head[LS_PROTO_VARINT_MOST];
    const size_t nkey = strlen(key), nvalue = strlen(value);
    const size_t content = nkey + nvalue + (size_t)(ls_proto_put(head, nkey) - head)
                           + (size_t)(ls_proto_put(head, nvalue) - head) + 2;
    to = ls_proto_put_head(to, TENSOR_EXTERNAL, content);
    to = ls_proto_put_bytes(to, ENTRY_KEY, key, nkey);
    return ls_proto_put_bytes(to, ENTRY_VALUE, value, nvalue);
}

unsigned char *ls_external_fields(const LsExternal *x, const LsExternalTensor *t,
                                  unsigned char to[LS_EXTERNAL_FIELDS])
{
    char number[32];
    to = put_entry(to, "location", x->location);
    snprintf(number, sizeof number, "%" PRId64, t->offset);
    to = put_entry(to, "offset", number);
    snprintf(number, sizeof number, "%" PRId64, t->bytes);
    to = put_entry(to, "length", number);
    return ls_proto_put(ls_proto_put(to, TENSOR_LOCATION), EXTERNAL);
}

/* ---- FILE.data ---- */

static void pad(LsOut *o, int64_t to)
{
    static const unsigned char zero[PAGE];
    while (o->at < to)
        ls_out_write(o, zero, (size_t)(to - o->at < PAGE ? to - o->at : PAGE));
}

static void put_merged(LsOut *o, const LsMemory *m, const LsExternal *x)
{
    const LsProgram *p = m->p;
    for (uint32_t k = 0; k < p->adapters.nmerged; k++) {
        const LsMergedWeight *w = &p->adapters.merged[k];
        const LsExternalTensor *t =
            ls_external_find(x, p->file.onnx + ls_exported(p, w->weight)->onnx_offset);
        if (t != NULL)
            ls_export_merged(o, m, w, t->offset);
        else
            o->err = EIO;       /* no weight is missing: ls_external_add takes all */
    }
}

void ls_external_write(LsOut *o, const LsMemory *m, LsDataType type, const LsExternal *x)
{
    for (uint32_t k = 0; k < x->n; k++) {
        const LsExternalTensor *t = &x->tensor[k];
        pad(o, t->offset);
        if (t->state != NULL)
            ls_export_values(o, m, t->state, t->narrow ? type : LS_DT_REAL);
        else
            ls_export_copy(o, m, t->raw, (size_t)t->bytes);
    }
    put_merged(o, m, x);
}
