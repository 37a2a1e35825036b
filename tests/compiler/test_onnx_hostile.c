/* tests/compiler/test_onnx_hostile.c -- files made to harm: what they say is printed harmlessly,
 * and refusing them takes little memory. */
#include "base/plain_text.h"
#include "compiler/inspect/onnx_inspect.h"
#include "tests/support/less.h"
#include "tests/support/onnx_small.h"
#include "tests/support/suite.h"

#include <sys/resource.h>

/* ---- text ---- */
static void check_plain(const char *s, const char *want)
{
    char *text = NULL;
    size_t n = 0;
    FILE *to = open_memstream(&text, &n);
    ls_plain_text(to, s);
    fclose(to);
    ck_assert_str_eq(text, want);
    free(text);
}

START_TEST(control_characters_and_broken_utf8_are_escaped)
{
    check_plain("layer1/conv.weight", "layer1/conv.weight");
    check_plain("a  b\x1b[31m\n\r\t\x7f", "a  b\\x1b[31m\\x0a\\x0d\\x09\\x7f");
    check_plain("\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", "\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80");
    check_plain("\xff \xc3 \xc0\xaf \xed\xa0\x80 \xf4\x90\x80\x80",
                "\\xff \\xc3 \\xc0\\xaf \\xed\\xa0\\x80 \\xf4\\x90\\x80\\x80");
    check_plain("\xc2\x9b"
                "31m",
                "\\xc2\\x9b31m"); /* a terminal may take it for ESC [ */
}
END_TEST

/* No byte of the message could move a cursor, and a line ends where the message does. */
START_TEST(names_of_a_file_are_printed_harmlessly)
{
    mk.g->node[0]->name = "evil\x1b[31m\n  hint: rm -rf /\n\xff";
    mk.g->node[0]->op_type = "Mat\x07Mul";
    refuse(LS_E_UNSUPPORTED, LS_EXIT_UNSUPPORTED, "Mat\\x07Mul");
    mk.g->node[0]->op_type = "MatMul";
    mk.cx.exit_code = 0;
    mk.g->node[0]->input[1] = "no\x1b]0;title\x07such\nvalue";
    refuse(LS_E_NAME, LS_EXIT_MODEL, "'evil\\x1b[31m\\x0a  hint: rm -rf /\\x0a\\xff' (MatMul)");
    for (const char *c = make_log(&mk); *c != '\0'; c++)
        ck_assert_msg(*c == '\n' || (unsigned char)*c >= ' ', "byte %d is printed", *c);
}
END_TEST

START_TEST(a_name_of_a_megabyte_is_shortened)
{
    char *name = ls_arena_alloc(mk.cx.arena, (1 << 20) + 1, 1);
    memset(name, 'a', 1 << 20);
    mk.g->node[0]->name = mk.g->node[0]->input[1] = name;
    refuse(LS_E_NAME, LS_EXIT_MODEL, "aaa...aaa");
    ck_assert_uint_lt(strlen(make_log(&mk)), 2000);
}
END_TEST

static char *inspected(bool json)
{
    char *text = NULL;
    size_t n = 0;
    bool trainable;
    unsigned char *bytes;
    const size_t size = make_pack(&mk, &bytes);
    make_write(&mk, bytes, size);
    FILE *to = open_memstream(&text, &n);
    ck_assert(ls_inspect(&mk.cx, mk.path, &mk.o, to, json, true, &trainable));
    fclose(to);
    return text;
}

/* Every byte prints, and the words, which end with NULL, are said. */
static void inspect_says(bool json, const char *const word[])
{
    char *said = inspected(json);
    for (const char *const *s = word; *s != NULL; s++)
        ck_assert_msg(strstr(said, *s) != NULL, "not said: %s\nbut: %s", *s, said);
    for (const char *c = said; *c != '\0'; c++)
        ck_assert_msg(*c == '\n' || (json && *c == '\t') || (*c >= ' ' && *c < 0x7f),
                      "byte %d is printed", *c);
    free(said);
}

START_TEST(inspect_prints_names_of_a_file_harmlessly)
{
    mk.m->producer_name = "p\x1b[2J";
    mk.g->input[0]->name = mk.g->node[0]->input[0] = "x\n  problems:\xff";
    make_input(&mk, "y2", "2xN\x1b");
    mk.g->initializer[0]->name = mk.g->node[0]->input[1] = "w\x1b[31m";
    mk.g->output[0]->name = mk.g->node[1]->output[0] = "y\r\xc2\x9b";
    inspect_says(false, (const char *const[]){"p\\x1b[2J", "x\\x0a  problems:\\xff", "2xN\\x1b",
                                              "w\\x1b[31m", "y\\x0d\\xc2\\x9b", NULL});
    inspect_says(true, (const char *const[]){"p\\u001b[2J", "x\\n  problems:\\\\xff", "N\\u001b",
                                             "w\\u001b[31m", "y\\r\\\\xc2\\\\x9b", NULL});
    make_node(&mk, "No\x07pe", "h", "z")->name = "n\x1b";
    inspect_says(false, (const char *const[]){"No\\x07pe: 1 node, the first is 'n\\x1b'", NULL});
    inspect_says(true, (const char *const[]){"No\\u0007pe", NULL});
}
END_TEST

/* ---- memory ---- */

/* From now on the process may take so much more memory. Sanitizers need more than that. */
static void allow(size_t megabytes)
{
    long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (tests_do_less() || f == NULL || fscanf(f, "%ld", &pages) != 1)
        return;
    fclose(f);
    const rlim_t most = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + (megabytes << 20);
    ck_assert_int_eq(setrlimit(RLIMIT_AS, &(struct rlimit){most, most}), 0);
}

/* Branches within branches, all of whose results have the same name. */
static Onnx__GraphProto *branch(int depth)
{
    Onnx__GraphProto *g = MAKE_NEW(&mk, Onnx__GraphProto, onnx__graph_proto__init);
    Onnx__NodeProto *p = make_body(&mk, depth == 0 ? "Relu" : "If", depth == 0 ? "x" : "c", "z");
    for (int k = 0; k < 2 && depth > 0; k++)
        make_attr(&mk, p, k == 0 ? "then_branch" : "else_branch",
                  ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH)
            ->g = branch(depth - 1);
    MAKE_PUSH(&mk, g->node, g->n_node, p);
    MAKE_PUSH(&mk, g->output, g->n_output, make_value(&mk, "z", MAKE_FLOAT, NULL));
    g->name = "b";
    return g;
}

START_TEST(a_thousand_branches_with_one_name_take_little_memory)
{
    enum { DEPTH = 10 }; /* 2^10 branches in about 100 KB */
    Onnx__NodeProto *p = make_node(&mk, "If", "c", "q");
    for (int k = 0; k < 2; k++)
        make_attr(&mk, p, k == 0 ? "then_branch" : "else_branch",
                  ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH)
            ->g = branch(DEPTH);
    MAKE_PUSH(&mk, mk.g->initializer, mk.g->n_initializer, make_tensor(&mk, "c", 9, "1", "\1", 1));
    make_node(&mk, "Add", "q h", "t");
    allow(64);
    refuse(LS_E_SHAPE, LS_EXIT_MODEL, "(Add)");
}
END_TEST

/* f39 calls f38 twice, which calls f37 twice, ... */
START_TEST(functions_that_double_each_time_are_refused)
{
    for (int k = 0; k < 40; k++) {
        Onnx__FunctionProto *f =
            make_function(&mk, ls_arena_printf(mk.cx.arena, "f%d", k), "X", "Y");
        const char *callee = k == 0 ? "Relu" : ls_arena_printf(mk.cx.arena, "f%d", k - 1);
        for (int call = 0; call < 2; call++) {
            Onnx__NodeProto *p =
                make_body(&mk, callee, call == 0 ? "X" : "t", call == 0 ? "t" : "Y");
            p->domain = k == 0 ? NULL : "local";
            MAKE_PUSH(&mk, f->node, f->n_node, p);
        }
    }
    make_node(&mk, "f39", "h", "z")->domain = "local";
    allow(64);
    refuse(LS_E_CYCLE, LS_EXIT_MODEL, "call each other more than 16 deep");
}
END_TEST

START_TEST(a_rank_of_a_hundred_thousand_is_refused)
{
    enum { RANK = 100000 };
    Onnx__TensorProto *t = make_tensor(&mk, "r", MAKE_FLOAT, "1", &(float){1}, 4);
    t->dims = ls_arena_alloc(mk.cx.arena, RANK, sizeof *t->dims);
    for (t->n_dims = 0; t->n_dims < RANK; t->n_dims++)
        t->dims[t->n_dims] = 1;
    MAKE_PUSH(&mk, mk.g->initializer, mk.g->n_initializer, t);
    make_node(&mk, "Add", "h r", "z");
    allow(64);
    refuse(LS_E_SHAPE, LS_EXIT_MODEL, "rank 100000; at most 8 is supported");
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("onnx_hostile");
    tcase_set_timeout(tc, 60);
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, control_characters_and_broken_utf8_are_escaped);
    tcase_add_test(tc, names_of_a_file_are_printed_harmlessly);
    tcase_add_test(tc, inspect_prints_names_of_a_file_harmlessly);
    tcase_add_test(tc, a_name_of_a_megabyte_is_shortened);
    tcase_add_test(tc, a_thousand_branches_with_one_name_take_little_memory);
    tcase_add_test(tc, functions_that_double_each_time_are_refused);
    tcase_add_test(tc, a_rank_of_a_hundred_thousand_is_refused);
    return run_tests("onnx_hostile", tc);
}
