/* runtime/predict/generate.c -- see generate.h. */
#include "runtime/predict/generate.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

bool ls_generator_open(LsGenerator *x, LsEngine *g, LsLoader *l, const LsAlphabet *a,
                       const LsDrawHow *how, int64_t count, LsError *e)
{
    *x = (LsGenerator){.alphabet = *a, .how = *how, .count = count};
    int16_t next = 0;
    for (int c = 0; c < 256; c++) {
        x->number[c] = ls_alphabet_has(a, c) ? next : -1;
        if (ls_alphabet_has(a, c))
            x->character[next++] = (unsigned char)c;
    }
    if (!ls_token_model_open(&x->model, g, l, e))
        return false;
    x->rank = calloc((size_t)x->model.vocabulary, sizeof *x->rank);
    if (x->rank == NULL)
        return ls_fail(e, LS_EXIT_FAIL, "out of memory");
    if (next > x->model.vocabulary)
        return ls_fail(e, LS_EXIT_DATA, "the alphabet has %d characters, the model %" PRId64
                       " classes", next, x->model.vocabulary);
    return true;
}

void ls_generator_close(LsGenerator *x)
{
    if (x->model.g != NULL)
        ls_token_model_close(&x->model);
    free(x->token);
    free(x->rank);
    *x = (LsGenerator){0};
}

void ls_generator_begin(LsGenerator *x) { x->n = 0; }

static bool append(LsGenerator *x, int64_t token, LsError *e)
{
    if (x->n == x->room) {
        const int64_t room = 2 * x->room + 256;
        int64_t *to = realloc(x->token, (size_t)room * sizeof *to);
        if (to == NULL)
            return ls_fail(e, LS_EXIT_FAIL, "out of memory");
        x->token = to;
        x->room = room;
    }
    x->token[x->n++] = token;
    return true;
}

bool ls_generator_add(LsGenerator *x, int64_t token, LsError *e)
{
    if (token < 0 || token >= x->model.vocabulary)
        return ls_fail(e, LS_EXIT_USAGE,
                       "the prompt has token %" PRId64 ", and the model has 0 to %" PRId64, token,
                       x->model.vocabulary - 1);
    return append(x, token, e);
}

static bool add_character(LsGenerator *x, unsigned char c, LsError *e)
{
    if (x->number[c] < 0)
        return ls_fail(e, LS_EXIT_USAGE,
                       c > 32 && c < 127
                           ? "the prompt has '%c', which is not among the %d characters that the "
                             "model was trained on"
                           : "the prompt has the byte %d, which is not among the %d characters "
                             "that the model was trained on",
                       c, ls_alphabet_count(&x->alphabet));
    return append(x, x->number[c], e);
}

static bool add_numbers(LsGenerator *x, const char *p, const char *end, LsError *e)
{
    static const char between[] = " ,\t\r\n[]";
    while (p < end) {
        int64_t v = 0;
        const char *from = p;
        if (*p != '\0' && strchr(between, *p) != NULL) {
            p++;
            continue;
        }
        for (; p < end && *p >= '0' && *p <= '9' && v < INT32_MAX; p++)
            v = 10 * v + (*p - '0');
        if (p == from || (p < end && (*p == '\0' || strchr(between, *p) == NULL)))
            return ls_fail(e, LS_EXIT_USAGE,
                           "the prompt has '%.*s': this model was trained on numbers of tokens, so "
                           "give such, with blanks between",
                           (int)(end - from < 20 ? end - from : 20), from);
        if (!ls_generator_add(x, v, e))
            return false;
    }
    return true;
}

bool ls_generator_prompt(LsGenerator *x, const char *text, size_t n, LsError *e)
{
    ls_generator_begin(x);
    if (ls_alphabet_count(&x->alphabet) == 0)
        return add_numbers(x, text, text + n, e);
    for (size_t i = 0; i < n; i++)
        if (!add_character(x, (unsigned char)text[i], e))
            return false;
    return true;
}

bool ls_generator_next(LsGenerator *x, int64_t index, int64_t *token, LsError *e)
{
    if (!ls_token_model_run(&x->model, x->token, x->n, e))
        return false;
    const int characters = ls_alphabet_count(&x->alphabet);
    *token = ls_token_draw(x->model.score, characters > 0 ? characters : x->model.vocabulary,
                           &x->how, index, x->rank);
    return append(x, *token, e);
}
