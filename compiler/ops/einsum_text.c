/* compiler/ops/einsum_text.c -- see the header. */
#include "compiler/ops/einsum_text.h"

char ls_einsum_letter(int label)
{
    return label < 26                  ? (char)('A' + label)
           : label < LS_EINSUM_LETTERS ? (char)('a' + label - 26)
                                       : '.';
}

static int label_of(char c)
{
    return c >= 'A' && c <= 'Z' ? c - 'A' : c >= 'a' && c <= 'z' ? c - 'a' + 26 : -1;
}

typedef struct Text {           /* one term as it stands: letters, and where an ellipsis is */
    int n, dots;                /* dots: letters before the ellipsis; -1: there is none */
    uint8_t label[LS_MAX_RANK];
} Text;

/* Reads one term from *at on, up to a comma, an arrow or the end. */
static bool read_term(LsOnnxNode *n, const char **at, Text *t)
{
    *t = (Text){.dots = -1};
    for (; **at != '\0' && **at != ',' && **at != '-'; (*at)++) {
        if (**at == ' ')
            continue;
        if (strncmp(*at, "...", 3) == 0 && t->dots < 0) {
            t->dots = t->n;
            *at += 2;
            continue;
        }
        int label = label_of(**at);
        if (label < 0)
            return ls_onnx_error(
                n, LS_E_ATTR, "it has letters, commas, one arrow and ellipses, as \"bij,bjk->bik\"",
                "the equation does not continue at \"%.20s\"", *at);
        if (t->n == LS_MAX_RANK)
            return ls_onnx_error(n, LS_E_UNSUPPORTED, NULL,
                                 "a term of the equation has more than %d letters", LS_MAX_RANK);
        t->label[t->n++] = (uint8_t)label;
    }
    return true;
}

/* The term with its ellipsis written out as `dots` axes, the last ones of the longest ellipsis. */
static bool expand(LsOnnxNode *n, const Text *t, int dots, LsEinsumTerm *to)
{
    to->n = 0;
    if (t->n + (t->dots >= 0 ? dots : 0) > LS_MAX_RANK)
        return ls_onnx_error(n, LS_E_UNSUPPORTED, NULL,
                             "a term of the equation has more than %d axes", LS_MAX_RANK);
    for (int k = 0; k <= t->n; k++) {
        for (int d = 0; k == t->dots && d < dots; d++)
            to->label[to->n++] = (uint8_t)(LS_EINSUM_LABELS - dots + d);
        if (k < t->n)
            to->label[to->n++] = t->label[k];
    }
    return true;
}

/* Notes the lengths of an operand's axes. */
static bool note_lengths(LsOnnxNode *n, LsEinsum *e, int operand)
{
    const LsShape *s = ls_shape(n->g, n->in[operand]);
    for (int k = 0; k < s->rank; k++) {
        int label = e->in[operand].label[k];
        int64_t *dim = &e->dim[label];
        if (*dim != 0 && *dim != 1 && s->dim[k] != 1 && s->dim[k] != *dim)
            return ls_onnx_error(
                n, LS_E_SHAPE, NULL,
                "axis %c has length %" PRId64 " in operand %d (%s), %" PRId64 " before",
                ls_einsum_letter(label), s->dim[k], operand, ls_dims(n->g, n->in[operand]), *dim);
        *dim = *dim > 1 ? *dim : s->dim[k];
    }
    return true;
}

static bool read_operand(LsOnnxNode *n, const char **at, int k, LsEinsum *e, int *most_dots)
{
    Text t;
    int rank = ls_shape(n->g, n->in[k])->rank;
    if (!read_term(n, at, &t))
        return false;
    int dots = rank - t.n;
    if (t.dots < 0 ? dots != 0 : dots < 0)
        return ls_onnx_error(n, LS_E_SHAPE, NULL, "operand %d is %s, its term has %d letters", k,
                             ls_dims(n->g, n->in[k]), t.n);
    if (t.dots >= 0 && dots > *most_dots)
        *most_dots = dots;
    return expand(n, &t, dots, &e->in[k]) && note_lengths(n, e, k);
}

/* Without an arrow: the ellipsis, then the letters that occur once, in the order of their codes. */
static bool implied(LsOnnxNode *n, const LsEinsum *e, Text *t)
{
    *t = (Text){.dots = 0};
    for (int label = 0; label < LS_EINSUM_LETTERS; label++) {
        int times = 0;
        for (int k = 0; k < n->nin; k++)
            for (int i = 0; i < e->in[k].n; i++)
                times += e->in[k].label[i] == label;
        if (times != 1)
            continue;
        if (t->n == LS_MAX_RANK)
            return ls_onnx_error(n, LS_E_UNSUPPORTED, NULL,
                                 "the result would have more than %d axes", LS_MAX_RANK);
        t->label[t->n++] = (uint8_t)label;
    }
    return true;
}

/* Each label of the result occurs once there, and in some operand. */
static bool check_result(LsOnnxNode *n, const LsEinsum *e)
{
    for (int k = 0; k < e->out.n; k++) {
        int label = e->out.label[k], times = 0;
        for (int i = 0; i < e->out.n; i++)
            times += e->out.label[i] == label;
        if (times > 1 || e->dim[label] == 0)
            return ls_onnx_error(n, LS_E_ATTR, NULL,
                                 times > 1 ? "the result has axis %c twice"
                                           : "axis %c of the result is in no operand",
                                 ls_einsum_letter(label));
    }
    return true;
}

bool ls_einsum_read(LsOnnxNode *n, LsEinsum *e)
{
    const char *at = ls_onnx_string(n, "equation", "");
    int dots = 0;
    Text out;
    *e = (LsEinsum){.in = ls_arena_alloc(n->cx->arena, (size_t)n->nin, sizeof *e->in)};
    for (int k = 0; k < n->nin; k++) {
        if (!read_operand(n, &at, k, e, &dots))
            return false;
        if (*at != ',' && k + 1 < n->nin)
            return ls_onnx_error(n, LS_E_ATTR, NULL, "the equation has %d terms for %d operands",
                                 k + 1, n->nin);
        at += *at == ',';
    }
    bool arrow = strncmp(at, "->", 2) == 0;
    at += arrow ? 2 : 0;
    if (arrow ? !read_term(n, &at, &out) : !implied(n, e, &out))
        return false;
    if (*at != '\0')
        return ls_onnx_error(n, LS_E_ATTR, "it has one term per operand, as \"bij,bjk->bik\"",
                             "the equation does not continue at \"%.20s\"", at);
    return expand(n, &out, dots, &e->out) && check_result(n, e);
}
