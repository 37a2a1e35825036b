/* tests/compiler/onnx_nodes.c -- ONNX's operator tests: results against the expected ones, and
 * gradients against central differences in double precision.
 *
 *   onnx_nodes FOLDER [NAME-PART]        FOLDER holds test_*; exits 77 when it is missing
 *   onnx_nodes --table FOLDER            every case as a row: verdict, operator, whether it is in
 * floats, name, note
 *
 * Every operand of a test that is real becomes a parameter, so each attribute combination that ONNX
 * tests has its gradient checked too. The function differentiated is a fixed random weighting of
 * all real results. A test with an unsupported operator is counted and does not fail; all others
 * must agree. */
#include "compiler/fold/append.h"
#include "compiler/onnx/onnx_import.h"
#include "tests/compiler/node_case.h"
#include "tests/support/less.h"
#include "tests/support/run_graph.h"

#include "compiler/passes/channels_last.h"

#include <dirent.h>
#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_CASES = 4096, SAMPLES = 12 };
typedef enum { PASS, FAIL, UNREAD, NOGRAD } Verdict;   /* NOGRAD: results agree,
                                                        * nothing to differentiate */
typedef struct Told {           /* what the process of a case says of it */
    char op[64], note[300];
    bool in_floats;
} Told;

static bool table;              /* print rows of --table */

static double random_weight(int64_t i)
{
    uint64_t z = (uint64_t)(i + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z ^= z >> 27;
    return (double)(z >> 40) / (1 << 24) + 0.25;
}

static LsGraph *import(LsCtx *cx, const char *model)
{
    cx->model = model;
    LsImportOptions o = {.training = true};
    LsGraph *g = ls_onnx_import(cx, model, &o);
    return g;
}

static bool finish(LsCtx *cx, LsGraph *g)
{
    return ls_dce(cx, g) && ls_layout(cx, g, NULL) && ls_verify(cx, g) && ls_fuse(cx, g)
        && ls_verify(cx, g);
}

/* Under sanitizers the run ends with a program's text: the C compiler would take most of the time,
 * its output is not sanitized, and the run without sanitizers checks the same results. */
static bool text_is_enough(void) { return tests_do_less(); }

/* largest: of the whole result. Where the terms of a sum cancel, the case's own number is the
 * rounding of the largest. */
static bool close_to(double got, double want, double largest, bool real)
{
    if (isnan(want) || isinf(want) || !real)
        return got == want || (isnan(got) && isnan(want));
    return fabs(got - want) <= 1e-7 * fmax(1, 3 * largest) + 1e-3 * fabs(want);
}

/* The largest size of an element that is a number. */
static double largest_of(const LsGraph *g, LsValueId v)
{
    double most = 0;
    for (int64_t i = 0; i < ls_count(ls_shape(g, v)); i++)
        most = isfinite(ls_const_at(g, v, i)) ? fmax(most, fabs(ls_const_at(g, v, i))) : most;
    return most;
}

/* The results of a program against the test's. */
static Verdict compare_results(LsCtx *cx, LsRunGraph *r, const LsNodeCase *c, char *note,
                               size_t size)
{
    const LsGraph *g = r->g;
    Verdict v = PASS;
    for (uint32_t k = 0; k < g->noutput && v == PASS; k++) {
        LsValueId out = g->output[k], want = c->expect[k];
        if (!ls_shape_same(ls_shape(g, out), ls_shape(c->holder, want))) {
            snprintf(note, size, "result %u is %s, expected %s", k,
                     ls_shape_text(cx->arena, ls_shape(g, out)),
                     ls_shape_text(cx->arena, ls_shape(c->holder, want)));
            v = FAIL;
            break;
        }
        double largest = largest_of(c->holder, want);
        ls_run_graph_until(r, out);
        for (int64_t i = 0; i < ls_count(ls_shape(g, out)) && v == PASS; i++) {
            double a = ls_run_graph_get(r, out, i), b = ls_const_at(c->holder, want, i);
            if (!close_to(a, b, largest, ls_type(g, out) == LS_REAL)) {
                snprintf(note, size, "result %u element %ld is %g, expected %g", k, (long)i, a, b);
                v = FAIL;
            }
        }
    }
    return v;
}

/* A program of the results alone, in single precision. */
static Verdict check_results(LsCtx *cx, const LsNodeCase *c, char *note, size_t size)
{
    LsGraph *g = import(cx, c->model);
    if (g == NULL || !finish(cx, g)) {
        snprintf(note, size, "%s", cx->last == LS_E_UNSUPPORTED ? "unsupported" : "refused");
        return cx->last == LS_E_UNSUPPORTED || cx->last == LS_E_NOT_CONST || cx->last == LS_E_TYPE
            || cx->last == LS_E_VERSION ? UNREAD : FAIL;
    }
    LsRunGraph *r = NULL;
    if (text_is_enough() && ls_run_graph_prints(cx, g, 4))
        return PASS;
    if (!text_is_enough())
        r = ls_run_graph_new(cx, g, 4);
    if (r == NULL)
        return snprintf(note, size, "does not build"), FAIL;
    Verdict v = compare_results(cx, r, c, note, size);
    ls_run_graph_free(r);
    return v;
}

/* Appends sum over real results of weight * element as the loss; false: no real result. */
static bool weighted_loss(LsCtx *cx, LsGraph *g)
{
    LsValueId sum = {0};
    for (uint32_t k = 0; k < g->noutput; k++) {
        LsValueId y = g->output[k];
        int64_t n = ls_count(ls_shape(g, y));
        if (ls_type(g, y) != LS_REAL || g->value[y.i].kind != LS_V_TEMP)
            continue;
        float *w = ls_arena_alloc(cx->arena, (size_t)n, sizeof *w);
        for (int64_t i = 0; i < n; i++)
            w[i] = (float)random_weight(i + 1000 * k);
        LsValueId part =
            ls_append2(cx, g, LS_OP_MUL, y, ls_const_add(cx, g, LS_REAL, ls_shape(g, y), w), NULL);
        part = ls_reduce_to(cx, g, part, (LsShape){0});
        sum = ls_is(sum) ? ls_append2(cx, g, LS_OP_ADD, sum, part, NULL) : part;
    }
    g->objective.loss = sum;
    return ls_is(sum);
}

static double loss_with(LsRunGraph *r, LsValueId param, int64_t i, double x)
{
    ls_run_graph_set(r, param, i, x);
    ls_run_graph_step(r);
    return ls_run_graph_get(r, r->g->objective.loss, 0);
}

/* The function jumps at x: with half the step, the difference quotient is about twice as large. */
static bool jumps(LsRunGraph *r, LsValueId param, int64_t i, double x, double h, double slope)
{
    double up = loss_with(r, param, i, x + h / 2), down = loss_with(r, param, i, x - h / 2);
    loss_with(r, param, i, x);
    return fabs((up - down) / h) > 1.5 * fabs(slope) + 1;
}

/* One parameter: a sample of its elements against central differences. */
static bool check_param(LsRunGraph *r, const LsGrad *gr, char *note, size_t size)
{
    const LsGraph *g = r->g;
    int64_t n = ls_count(ls_shape(g, gr->param)), step = n > SAMPLES ? n / SAMPLES : 1;
    for (int64_t i = 0; i < n; i += step) {
        double x = ls_run_graph_get(r, gr->param, i), h = fmin(1e-4, 1e-5 * fmax(1, fabs(x)));
        ls_run_graph_until(r, gr->grad);
        double got = ls_run_graph_get(r, gr->grad, i);
        double up = loss_with(r, gr->param, i, x + h), down = loss_with(r, gr->param, i, x - h);
        double here = loss_with(r, gr->param, i, x), slope = (up - down) / (2 * h);
        double right = (up - here) / h, left = (here - down) / h;
        if (fabs(right - left) > 1e-2 * (1 + fabs(slope)) || isnan(slope))
            continue;       /* the step contains a kink or a pole */
        if (!(fabs(got - slope) <= 2e-5 * (1 + fabs(slope)))
            && !jumps(r, gr->param, i, x, h, slope)) {
            snprintf(note, size, "gradient of %s element %ld is %.9g, differences say %.9g",
                     g->value[gr->param.i].name, (long)i, got, slope);
            return false;
        }
    }
    return true;
}

/* The results, and the gradients of every parameter, of a program in double precision. */
static Verdict check_gradients(LsCtx *cx, const LsNodeCase *c, char *note, size_t size)
{
    LsGraph *g = import(cx, c->model);
    if (g == NULL || !weighted_loss(cx, g))
        return NOGRAD;
    if (!ls_autodiff(cx, g))
        return cx->last == LS_E_NO_GRAD || cx->last == LS_E_LOSS
                   ? NOGRAD
                   : (snprintf(note, size, "autodiff fails"), FAIL);
    if (g->ngrad == 0)
        return NOGRAD;
    if (!ls_verify(cx, g) || !finish(cx, g))
        return snprintf(note, size, "the gradient graph is broken"), FAIL;
    LsRunGraph *r = NULL;
    if (text_is_enough() && ls_run_graph_prints(cx, g, 8))
        return PASS;
    if (!text_is_enough())
        r = ls_run_graph_new(cx, g, 8);
    if (r == NULL)
        return snprintf(note, size, "the gradient does not build"), FAIL;
    Verdict v = compare_results(cx, r, c, note, size);
    for (uint32_t k = 0; k < g->ngrad && v == PASS; k++)
        if (!check_param(r, &g->grad[k], note, size))
            v = FAIL;
    ls_run_graph_free(r);
    return v;
}

/* A case with gradients is one program, which gives the results, too. Whole sets run two programs.
 * Under sanitizers, where none is compiled, both are printed. */
static Verdict run_programs(LsCtx *cx, const LsNodeCase *c, char *note, size_t size)
{
    Verdict v;
    if (tests_do_all() || text_is_enough()) {
        v = check_results(cx, c, note, size);
        return v == PASS ? check_gradients(cx, c, note, size) : v;
    }
    v = check_gradients(cx, c, note, size);
    if (v != NOGRAD)
        return v;
    cx->nerror = 0;             /* a result that depends on no parameter is an error of the
                                 * gradients alone */
    v = check_results(cx, c, note, size);
    return v == PASS ? NOGRAD : v;
}

static Verdict run_case(const char *dir, FILE *log, Told *told)
{
    LsCtx cx = {.arena = ls_arena_new(), .model = dir, .log = log};
    LsNodeCase c;
    char work[] = "/tmp/ls-node-XXXXXX";
    const char *why = "";
    Verdict v = UNREAD;
    if (mkdtemp(work) != NULL && ls_node_case_read(&c, &cx, dir, work, &why)) {
        v = run_programs(&cx, &c, told->note, sizeof told->note);
        unlink(c.model);
    } else {
        snprintf(told->note, sizeof told->note, "%s", why);
    }
    snprintf(told->op, sizeof told->op, "%s", c.op);
    told->in_floats = c.in_floats;
    rmdir(work);
    ls_arena_free(cx.arena);
    return v;
}

/* In a process of its own, so that a crash is one failed case. */
static Verdict run_apart(const char *dir, Told *told)
{
    int pipe_fd[2];
    if (pipe(pipe_fd) != 0)
        return FAIL;
    pid_t pid = fork();
    if (pid == 0) {
        FILE *log = fopen("/dev/null", "w");
        Told say = {0};
        alarm(120);
        Verdict v = run_case(dir, log, &say);
        _exit(write(pipe_fd[1], &say, sizeof say) == sizeof say ? v : FAIL);
    }
    int status = 0;
    close(pipe_fd[1]);
    if (read(pipe_fd[0], told, sizeof *told) != sizeof *told)
        *told = (Told){.note = "crashed"};
    close(pipe_fd[0]);
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? (Verdict)WEXITSTATUS(status) : FAIL;
}

/* Why the case does not fit training; NULL: it does. */
static const char *left_out(const char *name)
{
    static const struct { const char *pattern, *reason; } row[] = {
#define LS_LEFT_OUT(pattern, reason) {pattern, reason},
#include "tests/compiler/node_left_out.def"
#undef LS_LEFT_OUT
    };
    bool keeps_all = strstr(name, "zero_ratio") != NULL;       /* dropouts that drop nothing */
    for (size_t k = 0; k < sizeof row / sizeof *row; k++)
        if (!keeps_all && fnmatch(row[k].pattern, name, 0) == 0)
            return row[k].reason;
    return NULL;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The end of the operator's words in a case's name: one word, or two for test_reduce_sum_... . */
static size_t operator_end(const char *name)
{
    size_t end = 5 + strcspn(name + 5, "_");
    bool more = strncmp(name, "test_reduce_", 12) == 0;
    return more ? end + 1 + strcspn(name + end + 1, "_") : end;
}

/* Of the cases of one operator, keeps the first, every sixth after it, and one that is written out
 * as a function; whole sets keep all. Returns the number of kept cases. */
static int select_cases(char **name, int n)
{
    int kept = 0, nth = 0, expanded = 0;
    for (int k = 0; k < n; k++) {
        size_t end = operator_end(name[k]);
        bool first =
            k == 0 || strncmp(name[k], name[k - 1], end) != 0 || name[k - 1][end] != name[k][end];
        nth = first ? 0 : nth;
        expanded = first ? 0 : expanded;
        bool keep = strstr(name[k], "_expanded") != NULL ? expanded++ == 0 : nth % 6 == 0;
        nth += strstr(name[k], "_expanded") == NULL;
        if (keep)
            name[kept++] = name[k];
    }
    return kept;
}

static int list_cases(const char *folder, const char *part, char **name)
{
    DIR *d = opendir(folder);
    int n = 0;
    if (d == NULL)
        return -1;
    for (struct dirent *e; (e = readdir(d)) != NULL && n < MAX_CASES; )
        if (strncmp(e->d_name, "test_", 5) == 0 && (part == NULL || strstr(e->d_name, part) != NULL)
            && (table || left_out(e->d_name) == NULL))
            name[n++] = strdup(e->d_name);
    closedir(d);
    qsort(name, (size_t)n, sizeof *name, by_name);
    return part != NULL || tests_do_all() ? n : select_cases(name, n);
}

/* Cases k = share, share + 2, ... ; prints failures, counts into count[]. */
static void run_share(const char *folder, char **name, int n, int share, int shares, bool verbose,
                      int *count)
{
    static const char *const word[] = {"ok", "FAIL", "unread", "ok, no gradient"};
    for (int k = share; k < n; k += shares) {
        char dir[1024];
        Told told = {0};
        snprintf(dir, sizeof dir, "%s/%s", folder, name[k]);
        const char *reason = left_out(name[k]);
        Verdict v = reason == NULL ? run_apart(dir, &told) : UNREAD;
        count[v]++;
        if (table)
            printf("%s\t%s\t%s\t%s\t%s\n", reason == NULL ? word[v] : "left out", told.op,
                   told.in_floats ? "floats" : "other", name[k],
                   reason == NULL ? told.note : reason);
        else if (v == FAIL || verbose)
            printf("%-16s %s  %s\n", word[v], name[k], told.note);
        fflush(stdout);
    }
}

int main(int argc, char **argv)
{
    static char *name[MAX_CASES];
    table = argc == 3 && strcmp(argv[1], "--table") == 0;
    if (table)
        setenv("LS_WHOLE", "1", 1), argv++, argc--;
    int n = argc > 1 ? list_cases(argv[1], argc > 2 ? argv[2] : NULL, name) : -1;
    if (n <= 0) {
        printf("skipped: no operator tests in '%s' (package libonnx-testdata)\n",
               argc > 1 ? argv[1] : "");
        return 77;
    }
    enum { SHARES = 2 };
    int total[4] = {0}, fd[SHARES][2];
    for (int s = 0; s < SHARES; s++) {
        if (pipe(fd[s]) != 0)
            return 1;
        if (fork() == 0) {
            int count[4] = {0};
            run_share(argv[1], name, n, s, SHARES, argc > 2, count);
            _exit(write(fd[s][1], count, sizeof count) != sizeof count);
        }
        close(fd[s][1]);
    }
    for (int s = 0; s < SHARES; s++) {
        int count[4] = {0, 1, 0, 0};
        if (read(fd[s][0], count, sizeof count) != sizeof count)
            printf("a worker died\n");
        for (int v = 0; v < 4; v++)
            total[v] += count[v];
        wait(NULL);
    }
    printf("%d with gradient, %d without, %d not read\n", total[PASS], total[NOGRAD],
           total[UNREAD]);
    printf("%d passed, %d failed, %d skipped\n", total[PASS] + total[NOGRAD], total[FAIL],
           total[UNREAD]);
    return total[FAIL] != 0;
}
