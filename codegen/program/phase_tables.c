/* codegen/program/phase_tables.c -- the tables of a phase: its steps with their kernels, addresses
 * and results. */
#include "codegen/program/phase_tables.h"

#include "compiler/passes/fuse.h"
#include "scheduler/plan/run_dependencies.h"
#include "compiler/passes/soft_scores.h"

#include <inttypes.h>

static const char *space_word(LsSpace s)
{
    static const char *const word[] = {"Z", "A", "S", "C", "I", "P", "L", "F"};
    return word[s];
}

static void print_address(LsEmit *e, LsAddress a, const char *end)
{
    fprintf(e->to, "%s(%" PRId64 ")%s", space_word(a.space), a.offset, end);
}

void ls_tensor_print(FILE *to, const LsTensor *t)
{
    static const char *const type[] = {"LS_DT_REAL", "LS_DT_I64",  "LS_DT_I32",
                                       "LS_DT_BOOL", "LS_DT_BF16", "LS_DT_F16", "LS_DT_U8"};
    static const char *const space[] = {"LS_AT_NONE", "LS_AT_ARENA", "LS_AT_STATE", "LS_AT_CONST",
                                        "LS_AT_INPUT", "LS_AT_SLICE", "LS_AT_LEVEL", "LS_AT_FILE"};
    fputc('{', to);
    ls_emit_string(to, t->name);
    fprintf(to, ", %s, %s, %d, {", type[t->type], t->channels_last ? "true" : "false", t->rank);
    for (int k = 0; k < t->rank; k++)
        fprintf(to, "%s%" PRId64, k > 0 ? ", " : "", t->dim[k]);
    fprintf(to, "%s}, {%s, %" PRId64 "}", t->rank == 0 ? "0" : "", space[t->at.space],
            t->at.offset);
    if (t->members > 0)
        fprintf(to, ", %" PRId64, t->members);
    fputc('}', to);
}

static LsValueId home_of(const LsPhaseText *ph, uint32_t t)
{
    return ls_problem_home(ph->g, ph->p->value_of[t]);
}

bool ls_phase_init(LsCtx *cx, LsPhaseText *ph, const LsCode *c, const LsCodePhase *from,
                   const char *name)
{
    *ph = (LsPhaseText){.name = name, .p = from->problem, .plan = from->plan,
                        .overlap = from->overlap && from->plan != NULL,
                        .stage = from == &c->once};
    if (from->problem == NULL)
        return true;
    const LsDag *d = &ph->p->dag;
    ph->g = ph->p->g;
    ph->at = ls_arena_alloc(cx->arena, d->ntensor, sizeof *ph->at);
    ph->first = ls_arena_alloc(cx->arena, d->ntensor, sizeof *ph->first);
    ph->made = ls_arena_alloc(cx->arena, d->ntensor, sizeof *ph->made);
    ph->shared = ls_arena_alloc(cx->arena, d->ntensor, sizeof *ph->shared);
    for (uint32_t t = 0; t < d->ntensor; t++) {
        ph->shared[t] = ls_address_of_shared(c->addresses, ph->g, ph->p->value_of[t]);
        if (d->tensor[t].persistent)
            ph->first[t] = ph->at[t] = ls_address_source(c->addresses, ph->g, ph->p->value_of[t]);
        else if (ls_is(home_of(ph, t)))
            ph->at[t] = ls_address_source(c->addresses, ph->g, home_of(ph, t));
    }
    return cx->nerror == 0;
}

bool ls_phase_runs(const LsPhaseText *ph, uint32_t s)
{
    return !ph->plan->step[s].free && ph->p->node_of[ph->plan->step[s].id].i != 0;
}

/* Kernels come in the order of the graph, not of the plan, so their text, and the C compiler's
 * output, is the same under every budget. */
bool ls_phase_name_kernels(LsCtx *cx, LsKernelSet *set, LsPhaseText *ph)
{
    uint32_t n = ph->g != NULL ? ph->p->dag.nnode : 0;
    ph->kernel = ls_arena_alloc(cx->arena, n, sizeof *ph->kernel);
    for (uint32_t i = 0; i < n; i++)
        if (!ph->p->dag.node[i].alternative && ph->p->node_of[i].i != 0)
            ph->kernel[i] = ls_kernel_set_add(set, ph->g, ph->p->node_of[i]);
    return cx->nerror == 0;
}

bool ls_phase_name_alternatives(LsCtx *cx, LsKernelSet *set, LsPhaseText *ph)
{
    for (uint32_t s = 0; ph->plan != NULL && s < ph->plan->nstep; s++) {
        const LsPlanStep *st = &ph->plan->step[s];
        if (ls_phase_runs(ph, s) && ph->kernel[st->id] == NULL)
            ph->kernel[st->id] = ls_kernel_set_add(set, ph->g, ph->p->node_of[st->id]);
    }
    return cx->nerror == 0;
}

/* Sets the addresses of step s's results from the plan. What another stage makes is not made
 * here. */
static void place_results(LsPhaseText *ph, uint32_t s)
{
    const LsPlanStep *st = &ph->plan->step[s];
    const LsDagNode *n = &ph->p->dag.node[st->id];
    for (uint32_t k = 0; k < n->nout; k++) {
        uint32_t t = n->out[k];
        if (!ls_is(home_of(ph, t)))
            ph->at[t] = ph->shared[t].space != LS_AT_NONE
                            ? ph->shared[t]
                            : (LsAddress){LS_AT_ARENA, ph->plan->offset[st->offset + k]};
        if (ph->made[t] == 0 && ls_phase_runs(ph, s)) {
            ph->made[t] = ph->nstep + 1;
            ph->first[t] = ph->at[t];
        }
    }
}

static LsAddress address_of(const LsPhaseText *ph, LsValueId v)
{
    int64_t t = ph->p->tensor_of[v.i];
    return ls_is(v) && t >= 0 ? ph->at[t] : (LsAddress){LS_AT_NONE, 0};
}

/* Prints a line of the address table: operands, results, workspace. */
static int print_arguments(LsPhaseText *ph, LsEmit *e, uint32_t s)
{
    const LsPlanStep *st = &ph->plan->step[s];
    LsNodeId n = ph->p->node_of[st->id];
    const LsNode *node = &ph->g->node[n.i];
    int narg = node->nin + node->nout;
    LsAddress *operand = ls_arena_alloc(ph->g->arena, node->nin, sizeof *operand);
    for (int k = 0; k < node->nin; k++)     /* before the results get addresses: the node may
                                             * rerun */
        operand[k] = ls_is_read(node, k) ? address_of(ph, ls_in(ph->g, n, k))
                                         : (LsAddress){LS_AT_NONE, 0};
    place_results(ph, s);
    fprintf(e->to, "    /* %4u ", ph->nstep);
    ls_emit_comment(e->to, node->name);
    fprintf(e->to, " */ ");
    for (int k = 0; k < node->nin; k++)
        print_address(e, operand[k], ", ");
    for (int k = 0; k < node->nout; k++)
        print_address(e, address_of(ph, ls_out(ph->g, n, k)), ", ");
    if (st->workspace_offset >= 0) {
        print_address(e, (LsAddress){LS_AT_ARENA, st->workspace_offset}, ",");
        narg++;
    }
    fputc('\n', e->to);
    return narg;
}

static void print_addresses(LsPhaseText *ph, LsEmit *e)
{
    for (uint32_t s = 0; ph->plan != NULL && s < ph->plan->nstep; s++)
        if (ls_phase_runs(ph, s)) {
            print_arguments(ph, e, s);
            ph->nstep++;
        } else if (!ph->plan->step[s].free) {
            place_results(ph, s);
        }
}

/* Prints the elements (with `types`, the type) of each step's results. */
static void print_results(const LsPhaseText *ph, LsEmit *e, bool types)
{
    for (uint32_t s = 0; ph->plan != NULL && s < ph->plan->nstep; s++) {
        const LsPlanStep *st = &ph->plan->step[s];
        if (!ls_phase_runs(ph, s))
            continue;
        LsNodeId n = ph->p->node_of[st->id];
        fprintf(e->to, "   ");
        for (int k = 0; k < ph->g->node[n.i].nout; k++) {
            LsValueId v = ls_out(ph->g, n, k);
            /* Padding columns may never be written: --check-numerics must not look at them. */
            int64_t count = ph->g->value[v.i].columns > 0 ? 0 : ls_count(ls_shape(ph->g, v));
            fprintf(e->to, " %" PRId64 ",", types ? (int64_t)ls_type(ph->g, v) : count);
        }
        fputc('\n', e->to);
    }
}

typedef struct Cursor { uint32_t address, result; } Cursor;    /* into the tables of all phases */

static void print_step(LsPhaseText *ph, LsEmit *e, const LsPlanStep *st, Cursor *at)
{
    static const char *const suffix[] = {"", " backward", " update"};
    LsNodeId n = ph->p->node_of[st->id];
    const LsNode *node = &ph->g->node[n.i];
    int narg = node->nin + node->nout + (st->workspace_offset >= 0);
    fprintf(e->to, "    {%s, ", ph->kernel[st->id]);
    ls_emit_string(e->to, ls_arena_printf(ph->g->arena, "%s%s%s", node->name ? node->name : "",
                                        suffix[node->phase], st->again ? " again" : ""));
    fprintf(e->to, ", \"%s\", %d, %d, %d, %u, %u, %s, %u, %" PRId64 "},\n", ls_op[node->op]->name,
            narg, node->nin, node->nout, at->address, at->result, st->again ? "true" : "false",
            ph->p->whole != NULL ? ph->p->whole[st->id] : st->id,
            st->workspace_offset >= 0 ? ph->p->dag.node[st->id].workspace : 0);
    at->address += (uint32_t)narg;
    at->result += node->nout;
}

static void print_steps(LsPhaseText *ph, LsEmit *e, Cursor *at)
{
    ls_emit_line(e, "static const LsStep %s_step[] = {", ph->name);
    for (uint32_t s = 0; ph->plan != NULL && s < ph->plan->nstep; s++)
        if (ls_phase_runs(ph, s))
            print_step(ph, e, &ph->plan->step[s], at);
    ls_emit_line(e, "{.run = NULL}");
    ls_emit_line(e, "};");
}

/* Prints each step's dependencies, a line each, and the lines' starts. */
static void print_waits(LsPhaseText *ph, LsEmit *e)
{
    if (!ph->overlap)
        return;
    LsPieces p = ls_pieces(ph->g->arena, &ph->p->dag, ph->plan);
    LsWaits w = ls_waits(ph->g->arena, &p, false);
    ls_emit_line(
        e, "\n/* Steps that must have ended before one begins: of step k, those from wait_of[k] "
           "on. */");
    ls_emit_line(e, "static const uint32_t %s_wait[] = {", ph->name);
    for (uint32_t r = 0; r < p.nrun; r++) {
        fprintf(e->to, "    /* %4u */", r);
        for (uint32_t k = w.on.at[r]; k < w.on.at[r + 1]; k++)
            fprintf(e->to, " %u,", w.on.id[k]);
        fputc('\n', e->to);
    }
    ls_emit_line(e, "0");
    ls_emit_line(e, "};");
    ls_emit_line(e, "static const uint32_t %s_wait_of[] = {", ph->name);
    for (uint32_t r = 0; r <= p.nrun; r++)
        fprintf(e->to, "%s%u,%s", r % 12 == 0 ? "    " : " ", w.on.at[r],
                r % 12 == 11 || r == p.nrun ? "\n" : "");
    ls_emit_line(e, "};");
}

static void print_watch(LsPhaseText *ph, LsEmit *e, const char *kind, const char *name, LsValueId v)
{
    int64_t t = ph->p->tensor_of[v.i];
    if (ph->stage && ph->made[t] == 0)      /* of another stage */
        return;
    LsTensor row = ls_address_tensor(ph->g, v, ph->first[t]);
    int64_t columns = ph->g->value[v.i].columns, apart = columns > 0 ? row.dim[row.rank - 1] : 0;
    row.name = name;
    row.members = ph->g->ensemble.members;
    if (columns > 0)
        row.dim[row.rank - 1] = columns;
    fprintf(e->to, "    {");
    ls_tensor_print(e->to, &row);
    fprintf(e->to, ", ");
    ls_emit_string(e->to, ls_arena_printf(ph->g->arena, "%s%s", kind, name));
    fprintf(e->to, ", %u, false, %" PRId64 "},\n", ph->made[t] > 0 ? ph->made[t] - 1 : 0, apart);
    ph->nwatch++;
}

LsNodeId ls_find_cross_entropy_of(const LsGraph *g, LsValueId label)
{
    for (uint32_t i = 1; i < g->nnode; i++)
        if ((g->node[i].op == LS_OP_XENT || g->node[i].op == LS_OP_NLL
             || g->node[i].op == LS_OP_XENT_SUM || g->node[i].op == LS_OP_XENT_PART)
            && (!ls_is(label) || ls_viewed(g, ls_in(g, (LsNodeId){i}, 1)).i == label.i))
            return (LsNodeId){i};
    return (LsNodeId){0};
}

int64_t ls_classes_of(const LsGraph *g, LsNodeId loss)
{
    const LsLossAttr *at = &g->node[loss.i].attr.loss;
    const int64_t columns = g->value[ls_in(g, loss, 0).i].columns;
    return g->node[loss.i].op == LS_OP_XENT_SUM ? at->nclass
           : columns > 0                        ? columns
                                                : ls_in_shape(g, loss, 0)->dim[at->axis];
}

LsNodeId ls_find_cross_entropy(const LsGraph *g)
{
    return ls_find_cross_entropy_of(g, g->objective.label);
}

/* The scores of the target, if the loss is a cross-entropy with probabilities. */
static LsNodeId find_soft(const LsGraph *g)
{
    for (uint32_t i = 1; i < g->nnode; i++)
        if (ls_soft_reads(g, (LsNodeId){i}, g->objective.label))
            return ls_soft_scores(g, (LsNodeId){i});
    return (LsNodeId){0};
}

LsNodeId ls_find_soft_scores(const LsGraph *g)
{
    return ls_find_cross_entropy(g).i == 0 && ls_is(g->objective.label) ? find_soft(g)
                                                                        : (LsNodeId){0};
}

static void print_watches(LsPhaseText *ph, LsEmit *e)
{
    ls_emit_line(e, "static const LsWatch %s_watch[] = {", ph->name);
    for (uint32_t i = 0; ph->g != NULL && i < ph->g->noutput; i++)
        print_watch(ph, e, "out/", ph->g->value[ph->g->output[i].i].name, ph->g->output[i]);
    static const char *const prefix[] = {
        [LS_GRAD] = "grad/", [LS_SAMPLE_GRAD] = "psgrad/", [LS_SAMPLE_NORM] = "psnorm/"};
    for (uint32_t i = 0; ph->g != NULL && i < ph->g->ngrad; i++) {
        const LsGrad *of = &ph->g->grad[i];
        if (ls_is(of->param))
            print_watch(ph, e, prefix[of->kind], ph->g->value[of->param.i].name, of->grad);
        else
            print_watch(ph, e, "", "psnorm", of->grad);
    }
    if (ph->g != NULL && !ph->g->training) {
        LsNodeId loss = ls_find_cross_entropy(ph->g);
        if (loss.i != 0 && ph->g->node[loss.i].op != LS_OP_XENT_SUM)
            print_watch(ph, e, "", "logits", ls_in(ph->g, loss, 0));
        const LsNodeId soft = ls_find_soft_scores(ph->g);
        if (soft.i != 0)
            print_watch(ph, e, "", "logits", ls_in(ph->g, soft, 0));
    }
    ls_emit_line(e, "{.key = NULL}");
    ls_emit_line(e, "};");
}

void ls_phase_print_entry(const LsPhaseText *ph, const char *field, LsEmit *e)
{
    int64_t t = ph->g != NULL ? ph->p->tensor_of[ph->g->objective.loss.i] : -1;
    int64_t w = ph->g != NULL ? ph->p->tensor_of[ph->g->objective.weight.i] : -1;
    ls_emit_line(e, ".%s = {", field);
    ls_emit_line(e, ".step = %s_step, .nstep = %u, .watch = %s_watch, .nwatch = %u,", ph->name,
                 ph->nstep, ph->name, ph->nwatch);
    if (ph->overlap)
        ls_emit_line(e, ".wait = %s_wait, .wait_of = %s_wait_of,", ph->name, ph->name);
    if (t >= 0)
        ls_emit_line(e, ".loss = %s(%" PRId64 "),", space_word(ph->at[t].space),
                     ph->at[t].offset);
    if (w >= 0)
        ls_emit_line(e, ".weight = %s(%" PRId64 "),", space_word(ph->at[w].space),
                     ph->at[w].offset);
    if (ph->plan != NULL)
        ls_emit_line(e, ".arena_bytes = %" PRId64 ", .live_peak = %" PRId64 ",", ph->plan->arena,
                     ph->plan->live_peak);
    ls_emit_line(e, "},");
}

void ls_phase_print_tables(LsPhaseText *const phase[], int n, LsEmit *e)
{
    Cursor at = {0};
    ls_emit_line(e, "#define A(offset) {LS_AT_ARENA, offset}");
    ls_emit_line(e, "#define S(offset) {LS_AT_STATE, offset}");
    ls_emit_line(e, "#define C(offset) {LS_AT_CONST, offset}");
    ls_emit_line(e, "#define I(index) {LS_AT_INPUT, index}");
    ls_emit_line(e, "#define Z(none) {LS_AT_NONE, none}");
    ls_emit_line(e, "#define F(offset) {LS_AT_FILE, offset}");
    if (phase[0]->g->rank.updates != NULL) {
        ls_emit_line(e, "#define P(offset) {LS_AT_SLICE, offset}");
        ls_emit_line(e, "#define L(offset) {LS_AT_LEVEL, offset}");
    }
    ls_emit_line(e, "\n/* Arguments of every step: operands, results, workspace; training, then "
                    "evaluation. */");
    ls_emit_line(e, "static const LsAddress address[] = {");
    for (int k = 0; k < n; k++)
        print_addresses(phase[k], e);
    ls_emit_line(e, "Z(0)");
    ls_emit_line(e, "};");
    for (int types = 0; types < 2; types++) {
        ls_emit_line(e, types ? "static const uint8_t element_type[] = {"
                              : "static const int64_t element_count[] = {");
        for (int k = 0; k < n; k++)
            print_results(phase[k], e, types);
        ls_emit_line(e, "0");
        ls_emit_line(e, "};");
    }
    for (int k = 0; k < n; k++)
        print_steps(phase[k], e, &at);
    for (int k = 0; k < n; k++)
        print_waits(phase[k], e);
    for (int k = 0; k < n; k++)
        print_watches(phase[k], e);
}
