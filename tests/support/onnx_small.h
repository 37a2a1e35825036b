/* tests/support/onnx_small.h -- for tests that change the small model of onnx_make.h and import it:
 * the model of the running test, its imported graph, or the check that it is refused. */
#ifndef LS_TESTS_SUPPORT_ONNX_SMALL_H
#define LS_TESTS_SUPPORT_ONNX_SMALL_H

#include "tests/support/onnx_make.h"

static Make mk;                 /* of the running test */

static inline void setup(void) { make_small(&mk); }
static inline void teardown(void) { make_end(&mk); }

static inline LsGraph *import_well(void)
{
    LsGraph *g = make_import(&mk);
    ck_assert_msg(g != NULL, "%s", make_log(&mk));
    ck_assert_msg(ls_verify(&mk.cx, g), "%s", make_log(&mk));
    return g;
}

/* The value of that name, or none. */
static inline LsValueId named(const LsGraph *g, const char *name)
{
    for (uint32_t i = 1; i < g->nvalue; i++)
        if (strcmp(g->value[i].name, name) == 0)
            return (LsValueId){i};
    return (LsValueId){0};
}

static inline LsValueKind kind(const LsGraph *g, const char *name)
{
    return g->value[named(g, name).i].kind;
}

/* The model is refused; the first words of the diagnosis and the exit code are right. */
static inline void refuse(LsErrId id, int exit_code, const char *says)
{
    ck_assert_ptr_null(make_import(&mk));
    ck_assert_msg(strstr(make_log(&mk), says) != NULL, "not said: %s\nbut: %s", says,
                  make_log(&mk));
    ck_assert_msg(mk.cx.last == id, "another error was the last: %s", make_log(&mk));
    ck_assert_int_eq(mk.cx.exit_code, exit_code);
}

#endif
