/* tests/codegen/test_emit_text.c -- names that files give cannot leave the comments and strings of
 * a program's text. */
#include "codegen/emit/text_emit.h"
#include "tests/support/gradient.h"
#include "tests/support/run_graph.h"
#include "tests/support/suite.h"

static const char evil[] = "n*/\n#error A\n/*x/*/ \"#error B\"\\\n*\\\n/ ?\?/\r\x1b";

static char *written(void (*write)(FILE *, const char *), const char *s)
{
    char *text = NULL;
    size_t n = 0;
    FILE *to = open_memstream(&text, &n);
    write(to, s);
    fclose(to);
    return text;
}

START_TEST(a_name_does_not_end_a_comment)
{
    char *text = written(ls_emit_comment, evil);
    ck_assert_ptr_null(strstr(text, "*/"));
    ck_assert_ptr_null(strstr(text, "/*"));
    ck_assert_uint_eq(strcspn(text, "\n\r\\?\x1b"), strlen(text));
    free(text);
    text = written(ls_emit_comment, "layer1/conv.weight \xc3\xa9");
    ck_assert_str_eq(text, "layer1/conv.weight \xc3\xa9");
    free(text);
}
END_TEST

/* The program compiles, so none of its names is read as C. */
START_TEST(a_program_of_hostile_names_compiles)
{
    graph_open();
    LsValueId w = param(evil, SHAPE(4, 4)), x = ls_append1(&cx, g, LS_OP_RELU, w, NULL);
    LsValueId y = ls_append2(&cx, g, LS_OP_MATMUL, x, w, &(LsAttr){.gemm = {.alpha = 1}});
    g->objective.loss = weighed(y);
    ck_assert(ls_autodiff(&cx, g));
    for (uint32_t i = 1; i < g->nnode; i++)
        g->node[i].name = evil;
    for (uint32_t i = 1; i < g->nvalue; i++)
        if (g->value[i].kind == LS_V_TEMP)
            g->value[i].name = ls_arena_printf(cx.arena, "%s%u", evil, i);
    ck_assert(ls_dce(&cx, g) && ls_fuse(&cx, g));
    LsRunGraph *r = ls_run_graph_new(&cx, g, 4);
    ck_assert_ptr_nonnull(r);
    ls_run_graph_free(r);
    graph_close();
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("emit_text");
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, a_name_does_not_end_a_comment);
    tcase_add_test(tc, a_program_of_hostile_names_compiles);
    return run_tests("emit_text", tc);
}
