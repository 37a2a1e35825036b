/* tests/compiler/test_messages.c -- what people read about files that cannot be compiled:
 * tests/compiler/messages.txt has models in a short form, each with the exact messages. LS_BLESS=1
 * writes the messages of now into it (./dev bless messages), and the difference is for people to
 * judge.
 *
 *   # title
 *   opset 17                           of ai.onnx, before the other lines
 *   input NAME DIMS [TYPE]             DIMS as 2xNx3, or - for none; TYPE: a number of ONNX's, else
 * float weight NAME DIMS [short]           floats; short: with less data than that ints NAME V...
 * a vector of int64 external NAME DIMS FILE [OFFSET]   data in a file node OP NAME IN... -> OUT...
 * [KEY=V ...]       V: a number, a list 1,2 or a word; IN "-": absent function NAME IN... -> OUT...
 * the nodes behind it are its own, up to "end" output NAME, loss KIND, import DOMAIN VERSION
 *   ---
 *   messages, up to the next title */
#include "compiler/pipeline.h"
#include "tests/support/onnx_make.h"
#include "tests/support/suite.h"

#include <ctype.h>

static Make mk;
static Onnx__FunctionProto *in_function;
static LsLossKind loss;

/* ---- the short form ---- */
enum { WORDS = 24 };

static void add_attribute(Onnx__NodeProto *p, char *word)
{
    char *value = strchr(word, '='), *rest;
    *value++ = '\0';
    if (strchr(value, ',') != NULL) {
        Onnx__AttributeProto *a =
            make_attr(&mk, p, word, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS);
        for (char *t = strtok_r(value, ",", &rest); t != NULL; t = strtok_r(NULL, ",", &rest))
            MAKE_PUSH(&mk, a->ints, a->n_ints, atoll(t));
    } else if (isdigit((unsigned char)*value) || *value == '-') {
        if (strchr(value, '.') != NULL)
            make_float(&mk, p, word, strtof(value, NULL));
        else
            make_int(&mk, p, word, atoll(value));
    } else {
        Onnx__AttributeProto *a =
            make_attr(&mk, p, word, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING);
        a->has_s = true;
        a->s.data = (uint8_t *)ls_arena_strdup(mk.cx.arena, value);
        a->s.len = strlen(value);
    }
}

/* word[from..] up to "->" or the end, with blanks between. */
static const char *names_from(char **word, int n, int *from)
{
    const char *names = "";
    for (bool first = true;
         *from < n && strcmp(word[*from], "->") != 0 && strchr(word[*from], '=') == NULL;
         first = false) {
        const char *name = word[(*from)++];
        names = ls_arena_printf(mk.cx.arena, "%s%s%s", names, first ? "" : " ",
                                strcmp(name, "-") == 0 ? "" : name);
    }
    *from += *from < n && strcmp(word[*from], "->") == 0;
    return names;
}

static void add_node(char **word, int n)
{
    int at = 3;
    const char *in = names_from(word, n, &at), *out = names_from(word, n, &at),
               *dot = strchr(word[1], '.');
    Onnx__NodeProto *p = make_body(&mk, dot != NULL ? dot + 1 : word[1], in, out);
    if (dot != NULL)
        p->domain = ls_arena_printf(mk.cx.arena, "%.*s", (int)(dot - word[1]), word[1]);
    p->name = strcmp(word[2], "-") == 0 ? NULL : ls_arena_strdup(mk.cx.arena, word[2]);
    for (; at < n; at++)
        add_attribute(p, word[at]);
    if (in_function != NULL)
        MAKE_PUSH(&mk, in_function->node, in_function->n_node, p);
    else
        MAKE_PUSH(&mk, mk.g->node, mk.g->n_node, p);
}

static size_t count_of(const char *dims)
{
    size_t n = 1;
    for (const char *d = dims; *d != '\0'; d = strchr(d, 'x') != NULL ? strchr(d, 'x') + 1 : "")
        n *= (size_t)atoll(d);
    return n;
}

static void add_ints(char **word, int n)
{
    int64_t v[WORDS];
    for (int k = 2; k < n; k++)
        v[k - 2] = atoll(word[k]);
    Onnx__TensorProto *t =
        make_tensor(&mk, word[1], MAKE_I64, ls_arena_printf(mk.cx.arena, "%d", n - 2), v,
                    (size_t)(n - 2) * sizeof *v);
    MAKE_PUSH(&mk, mk.g->initializer, mk.g->n_initializer, t);
}

static void add_import(const char *domain, int64_t version)
{
    Onnx__OperatorSetIdProto *v =
        MAKE_NEW(&mk, Onnx__OperatorSetIdProto, onnx__operator_set_id_proto__init);
    v->domain = ls_arena_strdup(mk.cx.arena, domain);
    v->has_version = true;
    v->version = version;
    MAKE_PUSH(&mk, mk.m->opset_import, mk.m->n_opset_import, v);
}

static LsLossKind loss_kind(const char *word)
{
    return strcmp(word, "graph") == 0 ? LS_LOSS_GRAPH
           : strcmp(word, "mse") == 0 ? LS_LOSS_MSE
                                      : LS_LOSS_CE;
}

static void read_line(char **word, int n)
{
    const char *is = word[0];
    int at = 2;
    if (strcmp(is, "opset") == 0) {
        mk.m->opset_import[0]->version = atoll(word[1]);
    } else if (strcmp(is, "input") == 0) {
        MAKE_PUSH(&mk, mk.g->input, mk.g->n_input,
                  make_value(&mk, word[1], n > 3 ? atoi(word[3]) : MAKE_FLOAT,
                             strcmp(word[2], "-") == 0 ? NULL : word[2]));
    } else if (strcmp(is, "weight") == 0) {
        make_weight(&mk, word[1], word[2], count_of(word[2]) - (n > 3));
    } else if (strcmp(is, "ints") == 0) {
        add_ints(word, n);
    } else if (strcmp(is, "external") == 0) {
        make_external(&mk, make_weight(&mk, word[1], word[2], 0),
                      ls_arena_strdup(mk.cx.arena, word[3]),
                      n > 4 ? ls_arena_strdup(mk.cx.arena, word[4]) : NULL);
    } else if (strcmp(is, "node") == 0) {
        add_node(word, n);
    } else if (strcmp(is, "function") == 0) {
        const char *in = names_from(word, n, &at), *out = names_from(word, n, &at);
        in_function = make_function(&mk, word[1], in, out);
    } else if (strcmp(is, "end") == 0) {
        in_function = NULL;
    } else if (strcmp(is, "output") == 0) {
        make_output(&mk, word[1]);
    } else if (strcmp(is, "loss") == 0) {
        loss = loss_kind(word[1]);
    } else if (strcmp(is, "import") == 0) {
        add_import(word[1], atoll(word[2]));
    } else {
        ck_abort_msg("what is '%s'?", is);
    }
}

/* ---- one case ---- */

/* Names of the test's own folder become the model's alone. */
static void put_messages(FILE *to, const char *text)
{
    char folder[80];
    snprintf(folder, sizeof folder, "%s/", mk.dir);
    for (const char *hit; (hit = strstr(text, folder)) != NULL; text = hit + strlen(folder))
        fwrite(text, 1, (size_t)(hit - text), to);
    fputs(text, to);
}

/* Reads the model up to "---", compiles it, and writes it with the messages. */
static void run_case(char **at, FILE *to)
{
    char *line;
    make_begin(&mk, 17);
    in_function = NULL;
    loss = LS_LOSS_CE;
    while ((line = strsep(at, "\n")) != NULL) {
        char *word[WORDS], *rest;
        int n = 0;
        fprintf(to, "%s\n", line);
        if (strcmp(line, "---") == 0)
            break;
        char *words = ls_arena_strdup(mk.cx.arena, line);
        for (char *w = strtok_r(words, " ", &rest); w != NULL && n < WORDS;
             w = strtok_r(NULL, " ", &rest))
            word[n++] = w;
        if (n > 0 && word[0][0] != '#')
            read_line(word, n);
    }
    unsigned char *bytes;
    const size_t size = make_pack(&mk, &bytes);
    make_write(&mk, bytes, size);
    mk.cx.model = mk.path;
    LsPipelineOptions o = {
        .import = {.training = true}, .loss = {.kind = loss}, .optimizer = {.kind = LS_SGD}};
    const LsGraph *g = ls_pipeline(&mk.cx, mk.path, &o);
    put_messages(to, g != NULL ? "compiled\n" : make_log(&mk));
    fprintf(to, "\n");
    make_end(&mk);
}

static char *file_text(const char *path)
{
    FILE *f = fopen(path, "r");
    char *text = calloc(1, 1 << 17);
    ck_assert_msg(f != NULL && text != NULL, "cannot read %s", path);
    ck_assert_uint_lt(fread(text, 1, (1 << 17) - 1, f), (1 << 17) - 1);
    fclose(f);
    return text;
}

static const char path[] = LS_SOURCE "/tests/compiler/messages.txt";

static char *all_messages(char *cases)
{
    char *text = NULL, *at = cases, *line;
    size_t n = 0;
    FILE *to = open_memstream(&text, &n);
    while ((line = strsep(&at, "\n")) != NULL)
        if (strncmp(line, "# ", 2) == 0) {
            fprintf(to, "%s\n", line);
            run_case(&at, to);
        }
    fclose(to);
    return text;
}

START_TEST(messages_are_those_that_were_blessed)
{
    char *want = file_text(path), *cases = file_text(path), *got = all_messages(cases);
    if (getenv("LS_BLESS") != NULL) {
        FILE *f = fopen(path, "w");
        ck_assert(f != NULL && fputs(got, f) >= 0 && fclose(f) == 0);
    } else {
        size_t same = 0, line = 1;
        for (; want[same] != '\0' && want[same] == got[same]; same++)
            line += want[same] == '\n';
        ck_assert_msg(strcmp(want, got) == 0, "messages.txt, from line %zu on: now it is\n%.400s",
                      line, got + same);
    }
    free(want);
    free(cases);
    free(got);
}
END_TEST

/* Every case ends in an error, with advice. */
START_TEST(every_case_is_refused_with_a_hint)
{
    char *text = file_text(path);
    int cases = 0, advised = 0;
    for (char *at = text, *line; (line = strsep(&at, "\n")) != NULL;) {
        const bool begins = strncmp(line, "# ", 2) == 0;
        ck_assert_msg(!begins || advised == cases, "case %d has no hint", cases);
        cases += begins;
        advised = strncmp(line, "  hint: ", 8) == 0 ? cases : advised;
        ck_assert_msg(strcmp(line, "compiled") != 0, "case %d is compiled", cases);
    }
    ck_assert_int_ge(cases, 30);
    free(text);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("messages");
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, messages_are_those_that_were_blessed);
    tcase_add_test(tc, every_case_is_refused_with_a_hint);
    return run_tests("messages", tc);
}
