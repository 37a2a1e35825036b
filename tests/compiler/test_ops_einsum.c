/* tests/compiler/test_ops_einsum.c -- Einsum against sums over all labels, its gradients, the
 * matrix products that it becomes, and the equations that it refuses. */
#include "tests/support/onnx_node.h"
#include "tests/support/suite.h"

static double element(Eval *e, LsValueId v, const char *term, const int64_t at[])
{
    int64_t place = 0;
    for (int k = 0; term[k] != '\0'; k++) {
        int64_t dim = ls_shape(g, v)->dim[k];
        place = place * dim + (dim == 1 ? 0 : at[(int)term[k]]);
    }
    return e->v[v.i][place];
}

/* Terms in letters: an ellipsis is written out as the letters X, Y. */
static void check_einsum(const char *equation, int nin, const LsShape shape[],
                         const char *const term[], const char *result, uint32_t products)
{
    LsValueId in[3];
    int64_t dim[128] = {0}, at[128] = {0};
    Node n = {0};
    char labels[16] = "";
    LsShape space = {0}, to = {0};
    for (int k = 0; k < nin; k++) {
        in[k] = param("p", shape[k]);
        for (int i = 0; i < shape[k].rank; i++) {
            int64_t *d = &dim[(int)term[k][i]];
            *d = *d > shape[k].dim[i] ? *d : shape[k].dim[i];
            if (strchr(labels, term[k][i]) == NULL)
                labels[strlen(labels)] = term[k][i];
        }
    }
    for (int k = 0; labels[k] != '\0'; k++)
        space.dim[space.rank++] = dim[(int)labels[k]];
    for (int k = 0; result[k] != '\0'; k++)
        to.dim[to.rank++] = dim[(int)result[k]];
    node_string(&n, "equation", equation);
    LsValueId y = node_one(&n, "Einsum", 12, nin, in);
    expect_shape(y, to);
    ck_assert_uint_eq(count_op(LS_OP_MATMUL), products);
    Eval e = eval_new(g);
    eval_run(&e, 1, g->nnode);
    double *want = ls_arena_alloc(cx.arena, (size_t)ls_count(&to), sizeof *want);
    int64_t point[LS_MAX_RANK] = {0};
    do {
        for (int k = 0; k < space.rank; k++)
            at[(int)labels[k]] = point[k];
        int64_t place = 0;
        double product = 1;
        for (int k = 0; k < to.rank; k++)
            place = place * to.dim[k] + at[(int)result[k]];
        for (int k = 0; k < nin; k++)
            product *= element(&e, in[k], term[k], at);
        want[place] += product;
    } while (eval_next(point, &space));
    expect_run(y, (int)ls_count(&to), want);
    check_gradients(weighed(y));
    graph_reopen();
}
#define FORMS(...) (LsShape[]){__VA_ARGS__}
#define TERMS(...) (const char *const[]){__VA_ARGS__}

START_TEST(einsum_becomes_products_and_sums)
{
    check_einsum("bij,bjk->bik", 2, FORMS(SHAPE(2, 3, 4), SHAPE(2, 4, 5)), TERMS("bij", "bjk"),
                 "bik", 1);
    check_einsum("bhqd, bhkd -> bhqk", 2, FORMS(SHAPE(2, 2, 3, 4), SHAPE(2, 2, 5, 4)),
                 TERMS("bhqd", "bhkd"), "bhqk", 1);
    check_einsum("bqhd,bkhd->bhqk", 2, FORMS(SHAPE(2, 3, 2, 4), SHAPE(2, 5, 2, 4)),
                 TERMS("bqhd", "bkhd"), "bhqk", 1);
    check_einsum("ji,jk", 2, FORMS(SHAPE(4, 2), SHAPE(4, 3)), TERMS("ji", "jk"), "ik", 1);
    check_einsum("i,i->", 2, FORMS(SHAPE(4), SHAPE(4)), TERMS("i", "i"), "", 0);
    check_einsum("i,j->ji", 2, FORMS(SHAPE(4), SHAPE(3)), TERMS("i", "j"), "ji", 0);
    check_einsum("...ij,...jk->...ik", 2, FORMS(SHAPE(2, 3, 4), SHAPE(3, 1, 4, 2)),
                 TERMS("Yij", "XYjk"), "XYik", 1);
    check_einsum("...ii->...i", 1, FORMS(SHAPE(2, 3, 3)), TERMS("Xii"), "Xi", 0);
    check_einsum("iji->j", 1, FORMS(SHAPE(3, 2, 3)), TERMS("iji"), "j", 0);
    check_einsum("ii", 1, FORMS(SHAPE(3, 3)), TERMS("ii"), "", 0);
    check_einsum("iii->i", 1, FORMS(SHAPE(3, 3, 3)), TERMS("iii"), "i", 0);
    check_einsum("ij->ji", 1, FORMS(SHAPE(2, 3)), TERMS("ij"), "ji", 0);
    check_einsum("ab,bc,cd->ad", 3, FORMS(SHAPE(2, 3), SHAPE(3, 4), SHAPE(4, 2)),
                 TERMS("ab", "bc", "cd"), "ad", 2);
    check_einsum("bn,anm,bm->ba", 3, FORMS(SHAPE(2, 3), SHAPE(4, 3, 5), SHAPE(2, 5)),
                 TERMS("bn", "anm", "bm"), "ba", 2);
    check_einsum("ab,cb->a", 2, FORMS(SHAPE(2, 3), SHAPE(4, 3)), TERMS("ab", "cb"), "a", 1);
    check_einsum("ab,ab->ab", 2, FORMS(SHAPE(2, 1), SHAPE(2, 3)), TERMS("ab", "ab"), "ab", 0);
}
END_TEST

static void einsum_fails(const char *equation, LsErrId id, const char *text)
{
    Node n = {0};
    node_string(&n, "equation", equation);
    node_fails(&n, "Einsum", 12, IN(input(SHAPE(2, 3)), input(SHAPE(3, 4))), id, text);
}

START_TEST(einsum_refuses_equations_that_do_not_fit)
{
    einsum_fails("ij,jk,kl->il", LS_E_ATTR, "does not continue at \"kl->il\"");
    einsum_fails("ij->ij", LS_E_ATTR, "has 1 terms for 2 operands");
    einsum_fails("i,jk->ik", LS_E_SHAPE, "operand 0 is 2x3, its term has 1 letters");
    einsum_fails("ij,ik->jk", LS_E_SHAPE, "axis i has length 3 in operand 1 (3x4), 2 before");
    einsum_fails("ij,jk->il", LS_E_ATTR, "axis l of the result is in no operand");
    einsum_fails("ij,jk->ii", LS_E_ATTR, "the result has axis i twice");
    einsum_fails("i?,jk->ik", LS_E_ATTR, "does not continue at \"?,jk->ik\"");
    einsum_fails("ij,jk-ik", LS_E_ATTR, "does not continue at \"-ik\"");
    einsum_fails("ii,jk->ik", LS_E_SHAPE, "axis i has");
    einsum_fails("abcdefghij,jk->ik", LS_E_UNSUPPORTED, "more than 8 letters");
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("ops_einsum");
    tcase_add_checked_fixture(tc, graph_open, graph_close);
    tcase_add_test(tc, einsum_becomes_products_and_sums);
    tcase_add_test(tc, einsum_refuses_equations_that_do_not_fit);
    return run_tests("ops_einsum", tc);
}
