/* runtime/data/alphabet.c -- see alphabet.h. ONNX files are protocol buffers:
 * ModelProto.metadata_props is field 14, entries of key (1) and value (2). */
#include "runtime/data/alphabet.h"

#include <stdio.h>
#include <string.h>

#include "runtime/base/proto_field.h"

static const char key[] = "lowerset.alphabet";
enum { METADATA = LS_PROTO_BYTES(14), KEY = LS_PROTO_BYTES(1), VALUE = LS_PROTO_BYTES(2) };

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

void ls_alphabet_of_onnx(LsAlphabet *a, const unsigned char *onnx, size_t n)
{
    LsProtoBytes file = {onnx, onnx + n};
    LsProtoField entry, part;
    *a = (LsAlphabet){0};
    while (ls_proto_next(&file, &entry)) {
        LsProtoBytes name = {0}, value = {0};
        if (entry.tag != METADATA)
            continue;
        while (ls_proto_next(&entry.held, &part)) {
            if (part.tag == KEY)
                name = part.held;
            if (part.tag == VALUE)
                value = part.held;
        }
        if (ls_proto_equals(name, key) && value.p
            && !ls_alphabet_parse(a, (const char *)value.p, ls_proto_size(value)))
            *a = (LsAlphabet){0};
    }
}

size_t ls_alphabet_metadata(const LsAlphabet *a, unsigned char to[LS_ALPHABET_TEXT + 64])
{
    char text[LS_ALPHABET_TEXT];
    unsigned char entry[LS_ALPHABET_TEXT + 32];
    ls_alphabet_text(a, text);
    unsigned char *end = ls_proto_put_bytes(entry, KEY, key, strlen(key));
    end = ls_proto_put_bytes(end, VALUE, text, strlen(text));
    return (size_t)(ls_proto_put_bytes(to, METADATA, (char *)entry, (size_t)(end - entry)) - to);
}
