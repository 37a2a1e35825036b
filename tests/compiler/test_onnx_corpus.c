/* tests/compiler/test_onnx_corpus.c -- files written by other tools load or are refused with a
 * reason. */
#include "tests/support/onnx_make.h"
#include "tests/support/suite.h"

#include "compiler/inspect/onnx_inspect.h"

#include <ftw.h>

enum { SMALL = 13, OPEN = 3 };       /* models in tests/data/inputs; those whose batch is open are
                                      * refused */
static int nfile, nloaded;

/* Loads the file twice: as it is, and with every open dimension bound. */
static void try_file(const char *path)
{
    char *log = NULL;
    size_t n = 0;
    LsCtx cx = {.arena = ls_arena_new(), .log = open_memstream(&log, &n)};
    LsImportOptions o = {.training = true, .weightless = true};
    LsGraph *g = ls_onnx_import(&cx, path, &o);
    fflush(cx.log);
    ck_assert_msg(g != NULL || cx.nerror > 0, "%s is refused without a word", path);
    ck_assert_msg(g == NULL || ls_verify(&cx, g), "%s: %s", path, log);
    ck_assert_msg(cx.last != LS_E_VERIFY, "%s: %s", path, log);
    ck_assert_msg(g != NULL || strstr(log, "error LS-E") != NULL, "%s", path);
    ls_arena_free(cx.arena);
    LsCtx again = {.arena = ls_arena_new(), .log = cx.log};
    FILE *null = fopen("/dev/null", "w");
    bool trainable;
    ls_inspect(&again, path, &o, null, nfile % 2 == 0, false, &trainable);
    fclose(null);
    ls_arena_free(again.arena);
    fclose(cx.log);
    free(log);
    nfile++;
    nloaded += g != NULL;
}

static int visit(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
    (void)st, (void)ftw;
    size_t n = strlen(path);
    if (kind == FTW_F && n > 5 && strcmp(path + n - 5, ".onnx") == 0)
        try_file(path);
    return 0;
}

static void walk(const char *folder, int at_least)
{
    nfile = nloaded = 0;
    ck_assert_int_eq(nftw(folder, visit, 16, FTW_PHYS), 0);
    printf("%s: %d files, %d loaded\n", folder, nfile, nloaded);
    ck_assert_int_ge(nfile, at_least);
}

START_TEST(a_corpus_of_one_operator_models_never_crashes)
{
    char dir[] = "/tmp/lowerset-test-XXXXXX", command[512];
    if (access(LS_SHARED "/inputs/thirdparty/migraphx-parse-corpus.tar.xz", R_OK) != 0) {
        printf("skipped: %s/inputs is not there\n", LS_SHARED);
        return;
    }
    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(command, sizeof command, "tar -xJf '%s' -C %s", LS_SHARED
             "/inputs/thirdparty/migraphx-parse-corpus.tar.xz", dir);
    ck_assert_int_eq(system(command), 0);
    walk(dir, 900);
    snprintf(command, sizeof command, "rm -rf %s", dir);
    ck_assert_int_eq(system(command), 0);
}
END_TEST

START_TEST(every_shared_model_loads_or_says_why_not)
{
    walk(LS_SOURCE "/tests/data/inputs", SMALL);
    ck_assert_int_eq(nloaded, SMALL - OPEN);
    if (access(LS_SHARED "/inputs", R_OK) != 0) {
        printf("skipped: %s/inputs is not there\n", LS_SHARED);
        return;
    }
    walk(LS_SHARED "/inputs", 50);
    ck_assert_int_gt(nloaded, 35);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("corpus");
    tcase_set_timeout(tc, 400);
    tcase_add_test(tc, a_corpus_of_one_operator_models_never_crashes);
    tcase_add_test(tc, every_shared_model_loads_or_says_why_not);
    return run_tests("corpus", tc);
}
