/* tests/support/run_many.c -- see the header. A pair of plans takes the places of training and
 * evaluation in one set of tables; the names of a set are made different by the preprocessor. */
#include "tests/support/run_many.h"

#include "codegen/program/phase_tables.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct Pair {
    LsProblem *problem[2];
    LsPlan plan[2];
    LsAddresses *addresses;
    LsPhaseText phase[2];
} Pair;

struct LsRunMany {
    LsCtx *cx;
    LsTarget target;
    LsKernelSet *set;
    Pair *pair;
    uint32_t npair, cap;
    void *handle;
};

LsRunMany *ls_run_many_new(LsCtx *cx, int real_bytes)
{
    LsRunMany *m = ls_arena_alloc(cx->arena, 1, sizeof *m);
    m->cx = cx;
    m->target = ls_target_cpu(real_bytes);
    m->set = ls_kernel_set_new(cx, &m->target);
    return m;
}

int ls_run_many_add(LsRunMany *m, LsProblem *const problem[2], const LsPlan plan[2])
{
    LsCtx *cx = m->cx;
    m->pair = ls_arena_grow(cx->arena, m->pair, m->npair, m->npair + 1, sizeof *m->pair, &m->cap);
    Pair *p = &m->pair[m->npair];
    *p = (Pair){.problem = {problem[0], problem[1]}, .plan = {plan[0], plan[1]}};
    p->addresses = ls_addresses_new(cx, problem[0]->g, m->target.real_bytes, NULL, false);
    const LsCode code = {.target = &m->target, .addresses = p->addresses};
    for (int k = 0; k < 2; k++)
        if (!ls_phase_init(cx, &p->phase[k], &code, &(LsCodePhase){problem[k], &p->plan[k], false},
                           k == 0 ? "train" : "eval") ||
            !ls_phase_name_kernels(cx, m->set, &p->phase[k]) ||
            !ls_phase_name_alternatives(cx, m->set, &p->phase[k]))
            return -1;
    return 2 * (int)m->npair++;
}

static void print_pair(Pair *p, uint32_t k, LsEmit *e)
{
    static const char *const name[] = {"address",   "element_count", "element_type", "train_step",
                                       "eval_step", "train_watch",   "eval_watch"};
    enum { TABLES = 3, NAMES = sizeof name / sizeof *name };
    for (int i = 0; i < NAMES; i++)
        ls_emit_line(e, "#define %s %s_%u", name[i], name[i], k);
    LsPhaseText *const both[] = {&p->phase[0], &p->phase[1]};
    ls_phase_print_tables(both, 2, e);
    for (int i = 0; i < TABLES; i++)
        ls_emit_line(e, "#undef %s", name[i]);
    ls_emit_line(e, "const LsProgram program_%u = {", k);
    ls_emit_line(e, ".argument = {address_%u, element_count_%u, element_type_%u},", k, k, k);
    ls_phase_print_entry(&p->phase[0], "phase.train", e);
    ls_phase_print_entry(&p->phase[1], "phase.eval", e);
    ls_emit_line(e, "};");
    for (int i = TABLES; i < NAMES; i++)
        ls_emit_line(e, "#undef %s", name[i]);
}

static bool print(LsRunMany *m, const char *path)
{
    LsEmit e = {.to = fopen(path, "w")};
    if (e.to == NULL)
        return false;
    fprintf(e.to, "%s", m->target.real_bytes == 8 ? "#define LS_F64\n" : "");
    ls_kernel_set_print_includes(m->set, e.to);
    fprintf(e.to, "#include \"runtime/ls_program.h\"\n");
    ls_kernel_set_print(m->set, e.to);
    for (uint32_t k = 0; k < m->npair; k++)
        print_pair(&m->pair[k], k, &e);
    return fclose(e.to) == 0;
}

bool ls_run_many_build(LsRunMany *m, const char *flags)
{
    char dir[] = "/tmp/ls-many-XXXXXX";
    if (mkdtemp(dir) == NULL)
        return false;
    const char *c = ls_arena_printf(m->cx->arena, "%s/p.c", dir),
               *so = ls_arena_printf(m->cx->arena, "%s/p.so", dir);
    bool ok = print(m, c) &&
              system(ls_arena_printf(m->cx->arena,
                                     "cc -std=gnu11 %s -shared -fPIC -nostdlib -I%s %s -o %s -lgcc",
                                     flags, LS_SOURCE, c, so)) == 0;
    m->handle = ok ? dlopen(so, RTLD_NOW | RTLD_LOCAL) : NULL;
    if (ok && m->handle == NULL)
        fprintf(stderr, "%s\n", dlerror());
    if (m->handle == NULL || getenv("LS_MANY_KEEP") != NULL)
        fprintf(stderr, "the text is %s\n", c);
    else if (system(ls_arena_printf(m->cx->arena, "rm -rf %s", dir)) != 0)
        return false;
    return m->handle != NULL;
}

LsRunGraph *ls_run_many_open(LsRunMany *m, int k)
{
    Pair *p = &m->pair[k / 2];
    LsRunGraph *r = ls_arena_alloc(m->cx->arena, 1, sizeof *r);
    LsProgram *program = ls_arena_alloc(m->cx->arena, 1, sizeof *program);
    *program =
        *(const LsProgram *)dlsym(m->handle, ls_arena_printf(m->cx->arena, "program_%d", k / 2));
    if (k % 2 == 1)
        program->phase.train = program->phase.eval;
    program->constant = p->addresses->constant;
    *r = (LsRunGraph){.cx = m->cx,
                      .g = p->problem[k % 2]->g,
                      .problem = p->problem[k % 2],
                      .plan = p->plan[k % 2],
                      .addresses = p->addresses,
                      .program = program};
    ls_run_graph_open(r);
    return r;
}

void ls_run_many_free(LsRunMany *m)
{
    if (m->handle != NULL)
        dlclose(m->handle);
}
