/* runtime/data/token_stream.c -- one long row of tokens in a file: the .bin files of llm.c, with a
 * header, and of nanoGPT, bare numbers of 16 bits. Sample s is the window of tokens s * stride ..
 * s * stride + T - 1, its target the window one token later. The last tokens, too few for a window
 * and its target, are left out. The file is mapped: windows are read where they lie. */
#include "runtime/data/token_inputs.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { HEAD = 1024 }; /* bytes of the header: 256 numbers of 32 bits */

static uint32_t number_at(const LsFile *f, size_t k)
{
    const unsigned char *p = f->data + 4 * k;
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* The magic numbers of llm.c's data, with the version and the elements that belong to each. */
static const struct {
    uint32_t magic, version;
    LsElement type;
} format[] = {{20240520, 1, LS_U16}, {20240801, 7, LS_U32}};

static int format_of(const LsFile *f)
{
    for (int k = 0; k < (int)(sizeof format / sizeof *format); k++)
        if (f->size >= 8 && number_at(f, 0) == format[k].magic)
            return k;
    return -1;
}

static bool read_head(const LsFile *f, const char *raw, LsArray *a, LsError *e)
{
    const int k = format_of(f);
    if (raw)
        return ls_fail(e, LS_EXIT_USAGE,
                       "--raw=%s: %s has a header, which says that its tokens are "
                       "%s",
                       raw, f->path, ls_element_name(format[k].type));
    if (f->size < HEAD)
        return ls_fail(e, LS_EXIT_DATA, "%s: truncated: the header has %d bytes, %zu are there",
                       f->path, HEAD, f->size);
    if (number_at(f, 1) != format[k].version)
        return ls_fail(e, LS_EXIT_DATA, "%s: tokens of version %u; version %u is read", f->path,
                       number_at(f, 1), format[k].version);
    const int64_t said = number_at(f, 2), each = ls_element_bytes(format[k].type),
                  there = (int64_t)(f->size - HEAD) / each;
    if ((int64_t)(f->size - HEAD) != said * each)
        return ls_fail(e, LS_EXIT_DATA,
                       "%s: the header announces %" PRId64 " tokens, %" PRId64 " are there",
                       f->path, said, there);
    *a = (LsArray){f->data + HEAD, format[k].type, false, 1, {said}, said};
    return true;
}

/* Every second number of 16 bits is 0, and not all are: tokens of 32 or 64 bits. */
static bool looks_wider(const LsArray *a)
{
    enum { LOOK = 1 << 16, LEAST = 16 };
    bool other = false;
    for (int64_t i = 0; i < a->count && i < LOOK; i++) {
        const int64_t v = ls_array_int(a, i);
        if (i % 2 == 1 && v != 0)
            return false;
        other |= v != 0;
    }
    return other && a->count >= LEAST;
}

static bool bare(const LsFile *f, const char *raw, LsArray *a, LsError *e)
{
    static const LsElement type[] = {LS_U16, LS_U32, LS_I32, LS_I64};
    enum { NTYPES = sizeof type / sizeof *type };
    int k = 0;
    while (raw && k < NTYPES && strcmp(raw, ls_element_name(type[k])) != 0)
        k++;
    if (k == NTYPES)
        return ls_fail(e, LS_EXIT_USAGE, "--raw=%s: tokens are uint16, uint32, int32 or int64",
                       raw);
    const int64_t each = ls_element_bytes(type[k]), n = (int64_t)f->size / each;
    if ((int64_t)f->size % each != 0)
        return ls_fail(e, LS_EXIT_DATA,
                       "%s: %zu bytes are not a multiple of the %" PRId64 " of a token as %s",
                       f->path, f->size, each, ls_element_name(type[k]));
    *a = (LsArray){f->data, type[k], false, 1, {n}, n};
    if (!raw && looks_wider(a))
        return ls_fail(e, LS_EXIT_DATA,
                       "%s: every second token is 0, so they seem to have 32 or 64 "
                       "bits; --raw=uint32 or --raw=int64 reads such, --raw=uint16 these",
                       f->path);
    return true;
}

bool ls_stream_is(const LsDataset *d, const LsFile *f, bool bin)
{
    LsTokenInputs in;
    return ls_token_inputs(d, &in)
           && (format_of(f) >= 0 || (bin && strchr(d->opt.data, ',') == NULL));
}

static void bind(LsDataset *d, uint32_t input, const char *path, LsArray a, int64_t from,
                 int64_t samples)
{
    LsSource *s = &d->source[input];
    a.data += from * ls_element_bytes(a.type);
    a.count = samples * s->per_sample; /* windows may overlap */
    s->path = path;
    s->array = a;
    s->stride = d->opt.stride > 0 ? d->opt.stride : s->per_sample;
    s->stream = true;
    s->first = from;
}

/* The same numbers in every window: 0, 1, .. for positions, else one number. */
static void bind_part(LsDataset *d, uint32_t k, const char *path, LsRowPart part)
{
    static const int64_t zero = 0, one = 1;
    LsSource *s = &d->source[k];
    s->path = path;
    s->counts = part == LS_ROW_PLACE;
    s->one = true;
    s->array = (LsArray){
        (const unsigned char *)(part == LS_ROW_SEEN ? &one : &zero), LS_I64, false, 0, {0}, 1};
}

bool ls_stream_bind(LsDataset *d, const char *path, LsArray a, LsError *e)
{
    LsTokenInputs in;
    if (!ls_token_inputs(d, &in))
        return ls_fail(e, LS_EXIT_DATA,
                       "%s: a stream of tokens needs a program whose first input and target are "
                       "rows of integers of one length",
                       path);
    const int64_t stride = d->opt.stride > 0 ? d->opt.stride : in.tokens;
    if (a.count <= in.tokens)
        return ls_fail(e, LS_EXIT_DATA,
                       "%s: a window takes %" PRId64 " tokens and the one behind "
                       "them, the file has %" PRId64,
                       path, in.tokens, a.count);
    int64_t samples = (a.count - 1 - in.tokens) / stride + 1;
    if (d->opt.random_windows) {        /* windows may be moved by less than a stride */
        samples -= samples > 1;
        const int64_t behind = a.count - 1 - in.tokens - (samples - 1) * stride;
        d->moves = behind < stride - 1 ? behind : stride - 1;
    }
    bind(d, in.ids, path, a, 0, samples);
    bind(d, in.label, path, a, 1, samples);
    for (uint32_t k = 0; k < d->p->ninput; k++) {
        const LsRowPart part = ls_token_part(d, k);
        if (part != LS_ROW_TOKEN && d->source[k].per_sample == in.tokens)
            bind_part(d, k, path, part);
    }
    return true;
}

bool ls_tokens_read(LsArray *a, const LsFile *f, const char *raw, LsError *e)
{
    return format_of(f) >= 0 ? read_head(f, raw, a, e) : bare(f, raw, a, e);
}

bool ls_stream_read(LsDataset *d, const LsFile *f, LsError *e)
{
    LsArray a;
    return ls_tokens_read(&a, f, d->opt.raw, e) && ls_stream_bind(d, f->path, a, e);
}
