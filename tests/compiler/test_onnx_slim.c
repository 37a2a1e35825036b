/* tests/compiler/test_onnx_slim.c -- a model without the data of its large initializers is small,
 * and complete again when the data are put back. */
#include "tests/support/onnx_small.h"
#include "tests/support/suite.h"

#include "compiler/onnx_file/onnx_skim.h"

static unsigned char *bytes;
static size_t nbytes;

static void pack_model(void) { nbytes = make_pack(&mk, &bytes); }

static Onnx__ModelProto *unpacked(const LsSlim *s)
{
    Onnx__ModelProto *m = ls_onnx_unpack(&mk.cx, s->bytes, s->n);
    ck_assert_msg(m != NULL, "%s", make_log(&mk));
    return m;
}

START_TEST(what_is_cut_out_can_be_put_back)
{
    LsSlim s;
    make_weight(&mk, "big", "100x100", 10000);
    make_weight(&mk, "mid", "4x256", 1024);
    make_weight(&mk, "small", "4x255", 1020);
    mk.m->producer_name = "behind the graph and before it";
    mk.m->has_model_version = true;
    mk.m->model_version = 7;
    pack_model();
    ck_assert(ls_slim(mk.cx.arena, bytes, nbytes, &s));
    ck_assert_uint_eq(s.npart, 2);
    ck_assert_uint_lt(s.n, nbytes - 44096 + 8);
    Onnx__ModelProto *m = unpacked(&s);
    ck_assert(!m->graph->initializer[1]->has_raw_data);
    ls_slim_restore(&s, m->graph);
    const unsigned char *data = m->graph->initializer[1]->raw_data.data;
    ck_assert(data > bytes && data < bytes + nbytes);
    unsigned char *again = ls_arena_alloc(mk.cx.arena, nbytes + 1, 1);
    ck_assert_uint_eq(onnx__model_proto__get_packed_size(m), nbytes);
    onnx__model_proto__pack(m, again);
    ck_assert_int_eq(memcmp(again, bytes, nbytes), 0);
}
END_TEST

START_TEST(a_model_of_small_tensors_is_left_alone)
{
    LsSlim s;
    pack_model();
    ck_assert(!ls_slim(mk.cx.arena, bytes, nbytes, &s));
}
END_TEST

START_TEST(a_file_may_say_its_graph_twice)
{
    LsSlim s;
    make_weight(&mk, "big", "100x100", 10000);
    pack_model();
    unsigned char *twice = ls_arena_alloc(mk.cx.arena, 2 * nbytes, 1);
    memcpy(twice, bytes, nbytes);
    memcpy(twice + nbytes, bytes, nbytes);
    ck_assert(!ls_slim(mk.cx.arena, twice, 2 * nbytes, &s));    /* protobuf merges them */
}
END_TEST

START_TEST(weights_are_read_from_the_file)
{
    make_weight(&mk, "big", "100x100", 10000);
    make_weight(&mk, "tail", "100x4", 400);
    make_node(&mk, "MatMul", "big tail", "s");
    LsGraph *g = import_well();
    ck_assert_double_eq(ls_const_at(g, named(g, "big"), 9999), 5000);
    ck_assert_double_eq(ls_const_at(g, named(g, "tail"), 399), 200);
}
END_TEST

static void add_to(void *p, size_t n) { *(int *)p += (int)n; }

START_TEST(an_arena_ends_what_it_was_given)
{
    static int ended;
    ended = 0;
    LsArena *a = ls_arena_new();
    ls_arena_at_end(a, add_to, &ended, 3);
    ck_assert_int_eq(ended, 0);
    ls_arena_free(a);
    ck_assert_int_eq(ended, 3);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("slim");
    tcase_add_checked_fixture(tc, setup, teardown);
    const TTest *const test[] = {
        what_is_cut_out_can_be_put_back,
        a_model_of_small_tensors_is_left_alone,
        a_file_may_say_its_graph_twice,
        weights_are_read_from_the_file,
        an_arena_ends_what_it_was_given,
    };
    add_tests(tc, sizeof test / sizeof *test, test);
    return run_tests("slim", tc);
}
