/* runtime/data/alphabet.c -- see alphabet.h. ONNX files are protocol buffers: ModelProto.metadata_props
 * is field 14, entries of key (1) and value (2). Appended bytes continue a message. */
#include "runtime/data/alphabet.h"

#include <stdio.h>
#include <string.h>

static const char key[] = "lowerset.alphabet";
/* Field number and wire type (length-delimited). */
enum { METADATA = 14 << 3 | 2, KEY = 1 << 3 | 2, VALUE = 2 << 3 | 2 };

int ls_alphabet_count(const LsAlphabet *a)
{
    int n = 0;
    for (int k = 0; k < 4; k++)
        n += __builtin_popcountll(a->has[k]);
    return n;
}

bool ls_alphabet_same(const LsAlphabet *a, const LsAlphabet *b)
{
    return memcmp(a->has, b->has, sizeof a->has) == 0;
}

char *ls_alphabet_text(const LsAlphabet *a, char text[LS_ALPHABET_TEXT])
{
    int n = 0;
    text[0] = '\0';
    for (int c = 0; c < 256; c++)
        if (ls_alphabet_has(a, c))
            n += snprintf(text + n, (size_t)(LS_ALPHABET_TEXT - n), "%s%d", n ? "," : "", c);
    return text;
}

bool ls_alphabet_parse(LsAlphabet *a, const char *text, size_t n)
{
    int last = -1;
    *a = (LsAlphabet){0};
    for (size_t at = 0; at < n; at++) {
        int c = 0;
        size_t from = at;
        for (; at < n && text[at] >= '0' && text[at] <= '9' && c < 256; at++)
            c = 10 * c + text[at] - '0';
        if (at == from || c <= last || c > 255 || (at < n && text[at] != ','))
            return false;
        ls_alphabet_add(a, c);
        last = c;
    }
    return n > 0 && text[n - 1] != ',';
}

/* ---- in an ONNX file ---- */

typedef struct Bytes { const unsigned char *p, *end; } Bytes;

static bool varint(Bytes *b, uint64_t *v)
{
    *v = 0;
    for (int shift = 0; b->p < b->end && shift < 64; shift += 7) {
        unsigned char c = *b->p++;
        *v |= (uint64_t)(c & 127) << shift;
        if (c < 128)
            return true;
    }
    return false;
}

/* The next field: its tag, and its content if it is length-delimited. False at the end, and on
 * malformed bytes. */
static bool next_field(Bytes *b, uint64_t *tag, Bytes *held)
{
    uint64_t n = 0;
    *held = (Bytes){0};
    if (!varint(b, tag))
        return false;
    switch (*tag & 7) {
    case 0: return varint(b, &n);
    case 1: n = 8; break;
    case 2:
        if (!varint(b, &n))
            return false;
        break;
    case 5: n = 4; break;
    default: return false;
    }
    if (n > (uint64_t)(b->end - b->p))
        return false;
    *held = (Bytes){b->p, b->p + n};
    b->p += n;
    return true;
}

static bool equals(Bytes b, const char *text)
{
    size_t n = strlen(text);
    return (size_t)(b.end - b.p) == n && memcmp(b.p, text, n) == 0;
}

void ls_alphabet_of_onnx(LsAlphabet *a, const unsigned char *onnx, size_t n)
{
    Bytes file = {onnx, onnx + n}, entry, held;
    uint64_t tag, part;
    *a = (LsAlphabet){0};
    while (next_field(&file, &tag, &entry)) {
        Bytes name = {0}, value = {0};
        if (tag != METADATA)
            continue;
        while (next_field(&entry, &part, &held)) {
            if (part == KEY)
                name = held;
            if (part == VALUE)
                value = held;
        }
        if (name.p && value.p && equals(name, key)
            && !ls_alphabet_parse(a, (const char *)value.p, (size_t)(value.end - value.p)))
            *a = (LsAlphabet){0};
    }
}

static unsigned char *put_size(unsigned char *to, size_t n)
{
    for (; n > 127; n >>= 7)
        *to++ = (unsigned char)(n | 128);
    *to++ = (unsigned char)n;
    return to;
}

static unsigned char *put_bytes(unsigned char *to, int tag, const char *text, size_t n)
{
    *to++ = (unsigned char)tag;
    to = put_size(to, n);
    memcpy(to, text, n);
    return to + n;
}

size_t ls_alphabet_metadata(const LsAlphabet *a, unsigned char to[LS_ALPHABET_TEXT + 64])
{
    char text[LS_ALPHABET_TEXT];
    unsigned char entry[LS_ALPHABET_TEXT + 32];
    ls_alphabet_text(a, text);
    unsigned char *end = put_bytes(entry, KEY, key, strlen(key));
    end = put_bytes(end, VALUE, text, strlen(text));
    return (size_t)(put_bytes(to, METADATA, (char *)entry, (size_t)(end - entry)) - to);
}
