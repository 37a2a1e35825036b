/* codegen/program.c -- kernels, then the plan as tables: one line per step with its addresses. */
#include "codegen/program.h"

#include "codegen/cuda/cuda_program.h"
#include "codegen/kernel_set.h"
#include "compiler/fuse.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct Phase {          /* one phase while it is printed */
    const LsGraph *g;
    const LsProblem *p;
    const LsPlan *plan;
    const char *name;           /* "train", "eval" */
    LsAddress *at;              /* by dag tensor: where it lies now */
    LsAddress *first;           /* by dag tensor: where it lay after its first run */
    const char **kernel;        /* by dag node: name of its kernel */
    uint32_t *made;             /* by dag tensor: 1 + index of the step that first made it */
    uint32_t nstep, nwatch;
} Phase;

static const char *space_word(LsSpace s)
{
    static const char *const word[] = {"Z", "A", "S", "C", "I"};
    return word[s];
}

static void print_address(LsEmit *e, LsAddress a, const char *end)
{
    fprintf(e->to, "%s(%" PRId64 ")%s", space_word(a.space), a.offset, end);
}

static void print_tensor(FILE *to, const LsTensor *t)
{
    static const char *const type[] = {"LS_DT_REAL", "LS_DT_I64", "LS_DT_I32", "LS_DT_BOOL"};
    static const char *const space[] = {"LS_AT_NONE", "LS_AT_ARENA", "LS_AT_STATE", "LS_AT_CONST",
                                        "LS_AT_INPUT"};
    fputc('{', to);
    ls_emit_string(to, t->name);
    fprintf(to, ", %s, %s, %d, {", type[t->type], t->channels_last ? "true" : "false", t->rank);
    for (int k = 0; k < t->rank; k++)
        fprintf(to, "%s%" PRId64, k > 0 ? ", " : "", t->dim[k]);
    fprintf(to, "%s}, {%s, %" PRId64 "}}", t->rank == 0 ? "0" : "", space[t->at.space],
            t->at.offset);
}

static bool init_phase(LsCtx *cx, Phase *ph, const LsCode *c, const LsCodePhase *from,
                       const char *name)
{
    *ph = (Phase){.name = name, .p = from->problem, .plan = from->plan};
    if (from->problem == NULL)
        return true;
    const LsDag *d = &ph->p->dag;
    ph->g = ph->p->g;
    ph->at = ls_arena_alloc(cx->arena, d->ntensor, sizeof *ph->at);
    ph->first = ls_arena_alloc(cx->arena, d->ntensor, sizeof *ph->first);
    ph->made = ls_arena_alloc(cx->arena, d->ntensor, sizeof *ph->made);
    for (uint32_t t = 0; t < d->ntensor; t++)
        if (d->tensor[t].persistent)
            ph->first[t] = ph->at[t] = ls_address_source(c->addresses, ph->g, ph->p->value_of[t]);
    return cx->nerror == 0;
}

/* In the order of the graph, not of the plan: the kernels' text, and so what the C compiler makes
 * of it, is the same under every budget. Behind them the alternatives that the plan runs. */
static bool name_kernels(LsCtx *cx, LsKernelSet *set, Phase *ph)
{
    uint32_t n = ph->g != NULL ? ph->p->dag.nnode : 0;
    ph->kernel = ls_arena_alloc(cx->arena, n, sizeof *ph->kernel);
    for (uint32_t i = 0; i < n; i++)
        if (!ph->p->dag.node[i].alternative)
            ph->kernel[i] = ls_kernel_set_add(set, ph->g, ph->p->node_of[i]);
    return cx->nerror == 0;
}

static bool name_alternatives(LsCtx *cx, LsKernelSet *set, Phase *ph)
{
    for (uint32_t s = 0; ph->plan != NULL && s < ph->plan->nstep; s++) {
        const LsPlanStep *st = &ph->plan->step[s];
        if (!st->free && ph->kernel[st->id] == NULL)
            ph->kernel[st->id] = ls_kernel_set_add(set, ph->g, ph->p->node_of[st->id]);
    }
    return cx->nerror == 0;
}

/* Puts the results of run step s where the plan says. */
static void place_results(Phase *ph, uint32_t s)
{
    const LsPlanStep *st = &ph->plan->step[s];
    const LsDagNode *n = &ph->p->dag.node[st->id];
    for (uint32_t k = 0; k < n->nout; k++) {
        uint32_t t = n->out[k];
        ph->at[t] = (LsAddress){LS_AT_ARENA, ph->plan->offset[st->offset + k]};
        if (ph->made[t] == 0) {
            ph->made[t] = ph->nstep + 1;
            ph->first[t] = ph->at[t];
        }
    }
}

static LsAddress address_of(const Phase *ph, LsValueId v)
{
    int64_t t = ph->p->tensor_of[v.i];
    return ls_is(v) && t >= 0 ? ph->at[t] : (LsAddress){LS_AT_NONE, 0};
}

/* One line of the address table: operands, then results, then workspace. */
static int print_arguments(Phase *ph, LsEmit *e, uint32_t s)
{
    const LsPlanStep *st = &ph->plan->step[s];
    LsNodeId n = ph->p->node_of[st->id];
    const LsNode *node = &ph->g->node[n.i];
    int narg = node->nin + node->nout;
    LsAddress *operand = ls_arena_alloc(ph->g->arena, node->nin, sizeof *operand);
    for (int k = 0; k < node->nin; k++)     /* before the results move in: the node may run again */
        operand[k] = ls_is_read(node, k) ? address_of(ph, ls_in(ph->g, n, k))
                                         : (LsAddress){LS_AT_NONE, 0};
    place_results(ph, s);
    fprintf(e->to, "    /* %4u %s */ ", ph->nstep, node->name != NULL ? node->name : "");
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

static void print_addresses(Phase *ph, LsEmit *e)
{
    for (uint32_t s = 0; ph->plan != NULL && s < ph->plan->nstep; s++)
        if (!ph->plan->step[s].free) {
            print_arguments(ph, e, s);
            ph->nstep++;
        }
}

/* Elements (or, with types, the type) of each result of each step. */
static void print_results(const Phase *ph, LsEmit *e, bool types)
{
    for (uint32_t s = 0; ph->plan != NULL && s < ph->plan->nstep; s++) {
        const LsPlanStep *st = &ph->plan->step[s];
        if (st->free)
            continue;
        LsNodeId n = ph->p->node_of[st->id];
        fprintf(e->to, "   ");
        for (int k = 0; k < ph->g->node[n.i].nout; k++) {
            LsValueId v = ls_out(ph->g, n, k);
            fprintf(e->to, " %" PRId64 ",", types ? (int64_t)ls_type(ph->g, v)
                                                  : ls_count(ls_shape(ph->g, v)));
        }
        fputc('\n', e->to);
    }
}

typedef struct Cursor { uint32_t address, result; } Cursor;    /* into the tables of both phases */

static void print_step(Phase *ph, LsEmit *e, const LsPlanStep *st, Cursor *at)
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
            st->id, st->workspace_offset >= 0 ? ph->p->dag.node[st->id].workspace : 0);
    at->address += (uint32_t)narg;
    at->result += node->nout;
}

static void print_steps(Phase *ph, LsEmit *e, Cursor *at)
{
    ls_emit_line(e, "static const LsStep %s_step[] = {", ph->name);
    for (uint32_t s = 0; ph->plan != NULL && s < ph->plan->nstep; s++)
        if (!ph->plan->step[s].free)
            print_step(ph, e, &ph->plan->step[s], at);
    ls_emit_line(e, "{.run = NULL}");
    ls_emit_line(e, "};");
}

static void print_watch(Phase *ph, LsEmit *e, const char *kind, const char *name, LsValueId v)
{
    int64_t t = ph->p->tensor_of[v.i];
    LsTensor row = ls_address_tensor(ph->g, v, ph->first[t]);
    row.name = name;
    fprintf(e->to, "    {");
    print_tensor(e->to, &row);
    fprintf(e->to, ", ");
    ls_emit_string(e->to, ls_arena_printf(ph->g->arena, "%s%s", kind, name));
    fprintf(e->to, ", %u, false},\n", ph->made[t] > 0 ? ph->made[t] - 1 : 0);
    ph->nwatch++;
}

/* What the evaluation form compares with the labels: the scores that a cross-entropy reads. */
static LsNodeId find_cross_entropy(const LsGraph *g)
{
    for (uint32_t i = 1; i < g->nnode; i++)
        if (g->node[i].op == LS_OP_XENT || g->node[i].op == LS_OP_NLL)
            return (LsNodeId){i};
    return (LsNodeId){0};
}

static void print_watches(Phase *ph, LsEmit *e)
{
    ls_emit_line(e, "static const LsWatch %s_watch[] = {", ph->name);
    for (uint32_t i = 0; ph->g != NULL && i < ph->g->noutput; i++)
        print_watch(ph, e, "out/", ph->g->value[ph->g->output[i].i].name, ph->g->output[i]);
    for (uint32_t i = 0; ph->g != NULL && i < ph->g->ngrad; i++)
        print_watch(ph, e, "grad/", ph->g->value[ph->g->grad[i].param.i].name, ph->g->grad[i].grad);
    if (ph->g != NULL && !ph->g->training) {
        LsNodeId loss = find_cross_entropy(ph->g);
        if (loss.i != 0)
            print_watch(ph, e, "", "logits", ls_in(ph->g, loss, 0));
    }
    ls_emit_line(e, "{.key = NULL}");
    ls_emit_line(e, "};");
}

static void print_state(const LsAddresses *a, LsEmit *e)
{
    static const char *const kind[] = {"LS_STATE_PARAM", "LS_STATE_FROZEN", "LS_STATE_STAT",
                                       "LS_STATE_MOMENT"};
    ls_emit_line(e, "static const LsStateTensor state[] = {");
    for (uint32_t k = 0; k < a->nstate; k++) {
        const LsStateTensor *row = &a->state[k].row;
        fprintf(e->to, "    {");
        print_tensor(e->to, &row->t);
        fprintf(e->to, ", %s, %" PRId64 "},\n", kind[row->kind], row->onnx_offset);
    }
    ls_emit_line(e, "{.onnx_offset = -1}");
    ls_emit_line(e, "};");
}

/* Rows of the smallest table that v indexes; 0: none. */
static int64_t indexed_rows(const LsGraph *g, LsValueId v)
{
    int64_t rows = 0;
    for (uint32_t i = 1; i < g->nnode; i++) {
        const LsNode *n = &g->node[i];
        if (n->op != LS_OP_GATHER || ls_in(g, (LsNodeId){i}, 1).i != v.i)
            continue;
        int64_t dim = ls_in_shape(g, (LsNodeId){i}, 0)->dim[n->attr.axis.axis];
        rows = rows == 0 || dim < rows ? dim : rows;
    }
    return rows;
}

static void print_inputs(const LsGraph *g, LsEmit *e)
{
    ls_emit_line(e, "static const LsInput input[] = {");
    for (uint32_t k = 0; k < g->ninput; k++) {
        LsTensor t = ls_address_tensor(g, g->input[k], (LsAddress){LS_AT_INPUT, k});
        fprintf(e->to, "    {");
        print_tensor(e->to, &t);
        int64_t rows = indexed_rows(g, g->input[k]);
        fprintf(e->to, ", %s, %" PRId64 ", %" PRId64 "},\n",
                g->input[k].i == g->label.i ? "true" : "false", -rows, rows);
    }
    ls_emit_line(e, "{.is_label = false}");
    ls_emit_line(e, "};");
}

static void print_phase_entry(const Phase *ph, LsEmit *e)
{
    int64_t t = ph->g != NULL ? ph->p->tensor_of[ph->g->loss.i] : -1;
    ls_emit_line(e, ".%s = {", ph->name);
    ls_emit_line(e, ".step = %s_step, .nstep = %u, .watch = %s_watch, .nwatch = %u,", ph->name,
                 ph->nstep, ph->name, ph->nwatch);
    if (t >= 0)
        ls_emit_line(e, ".loss = %s(%" PRId64 "),", space_word(ph->at[t].space), ph->at[t].offset);
    if (ph->plan != NULL)
        ls_emit_line(e, ".arena_bytes = %" PRId64 ", .live_peak = %" PRId64 ",", ph->plan->arena,
                     ph->plan->live_peak);
    ls_emit_line(e, "},");
}

static void print_string_field(LsEmit *e, const char *field, const char *s)
{
    fprintf(e->to, "    .%s = ", field);
    ls_emit_string(e->to, s);
    fprintf(e->to, ",\n");
}

static void print_classes(const LsGraph *g, LsEmit *e)
{
    LsNodeId loss = find_cross_entropy(g);
    if (loss.i == 0)
        return;
    const LsLossAttr *at = &g->node[loss.i].attr.loss;
    ls_emit_line(
        e, ".classes = %" PRId64 ", .class_axis = %d, .has_ignore = %s, .ignore = %" PRId64 ",",
        ls_in_shape(g, loss, 0)->dim[at->axis], at->axis, at->has_ignore ? "true" : "false",
        at->has_ignore ? at->ignore : 0);
}

static void print_program(const LsCode *c, const Phase *train, const Phase *eval, LsEmit *e)
{
    const LsPlan *plan = c->train.plan;
    int64_t arena = plan->arena;
    if (c->eval.plan != NULL && c->eval.plan->arena > arena)
        arena = c->eval.plan->arena;
    ls_emit_line(e, "const LsProgram ls_program = {");
    print_string_field(e, "model", c->model);
    print_string_field(e, "plan_hash", c->plan_hash);
    print_string_field(e, "strategy", c->strategy);
    print_string_field(e, "loss", c->loss);
    print_string_field(e, "optimizer", c->optimizer);
    if (c->schedule != NULL)
        print_string_field(e, "default_schedule", c->schedule);
    ls_emit_line(e, ".real_bytes = %d, .batch = %" PRId64 ", .accumulate = %d,", c->target->real_bytes,
                 train->g->batch, c->accumulate);
    ls_emit_line(e, ".budget = %" PRId64 ", .state_bytes = %" PRId64 ",", c->budget,
                 c->addresses->state_bytes);
    ls_emit_line(e, ".arena_bytes = %" PRId64 ", .const_bytes = %u,", arena, c->addresses->nconst);
    ls_emit_line(e, ".overhead = %.6f, .default_lr = %g,", ls_plan_overhead(plan),
                 c->default_lr);
    ls_emit_line(e, ".state = state, .nstate = %u, .input = input, .ninput = %u,",
                 c->addresses->nstate, train->g->ninput);
    print_phase_entry(train, e);
    print_phase_entry(eval, e);
    print_classes(train->g, e);
    ls_emit_line(
        e, ".address = address, .element_count = element_count, .element_type = element_type,");
    ls_emit_line(e, ".constant = ls_constant_data, .onnx = ls_onnx_data, .onnx_bytes = %zu,",
                 c->onnx_bytes);
    if (c->target->kind == LS_TARGET_CUDA)
        ls_emit_line(e, ".device = &ls_cuda_device, .device_program = &cuda,");
    ls_emit_line(e, "};");
}

static void print_head(const LsCode *c, FILE *to)
{
    const LsPlan *plan = c->train.plan;
    fprintf(to, "/* Training program of %s, written by lowerset.\n *\n", c->model);
    fprintf(to, " * plan      %s, strategy %s, %u steps\n", c->plan_hash, c->strategy, plan->nstep);
    fprintf(to,
            " * state     %" PRId64 " bytes: parameters, running statistics, optimizer moments\n",
            c->addresses->state_bytes);
    fprintf(to,
            " * arena     %" PRId64 " bytes for all that a step computes (live peak %" PRId64 ")\n",
            plan->arena, plan->live_peak);
    if (c->budget > 0)
        fprintf(to, " * budget    %" PRId64 " bytes\n", c->budget);
    fprintf(to, " * recompute %.2f %% of a step's predicted cost\n */\n",
            100 * ls_plan_overhead(plan));
}

static void print_includes(const LsCode *c, FILE *to, const char *text)
{
    fprintf(to, "%s%s\n", c->target->real_bytes == 8 ? "#define LS_F64\n" : "", text);
}

static void print_tables(Phase *train, Phase *eval, LsEmit *e)
{
    Cursor at = {0};
    ls_emit_line(e, "\n/* Arguments of every step: operands, results, workspace; training, then "
                    "evaluation. */");
    ls_emit_line(e, "static const LsAddress address[] = {");
    print_addresses(train, e);
    print_addresses(eval, e);
    ls_emit_line(e, "Z(0)");
    ls_emit_line(e, "};");
    for (int types = 0; types < 2; types++) {
        ls_emit_line(e, types ? "static const uint8_t element_type[] = {"
                              : "static const int64_t element_count[] = {");
        print_results(train, e, types);
        print_results(eval, e, types);
        ls_emit_line(e, "0");
        ls_emit_line(e, "};");
    }
    print_steps(train, e, &at);
    print_steps(eval, e, &at);
    print_watches(train, e);
    print_watches(eval, e);
}

bool ls_program_print(LsCtx *cx, const LsCode *c, FILE *to, FILE *device)
{
    LsEmit e = {.to = to};
    LsKernelSet *set = ls_kernel_set_new(cx, c->target);
    Phase train, eval;
    if (!init_phase(cx, &train, c, &c->train, "train")
        || !init_phase(cx, &eval, c, &c->eval, "eval"))
        return false;
    if (!name_kernels(cx, set, &train) || !name_kernels(cx, set, &eval)
        || !name_alternatives(cx, set, &train) || !name_alternatives(cx, set, &eval))
        return false;
    if (device != NULL)
        ls_kernel_set_share(set);
    char *tables = NULL;        /* after the kernels in the file, but they complete the constants */
    size_t size = 0;
    e.to = open_memstream(&tables, &size);
    if (e.to == NULL)
        return ls_error(cx, LS_NOWHERE, LS_E_IO, NULL, "out of memory");
    ls_emit_line(&e, "#define A(offset) {LS_AT_ARENA, offset}");
    ls_emit_line(&e, "#define S(offset) {LS_AT_STATE, offset}");
    ls_emit_line(&e, "#define C(offset) {LS_AT_CONST, offset}");
    ls_emit_line(&e, "#define I(index) {LS_AT_INPUT, index}");
    ls_emit_line(&e, "#define Z(none) {LS_AT_NONE, none}");
    print_tables(&train, &eval, &e);
    ls_emit_line(&e, "\n/* ---- state, inputs, program ---- */");
    print_state(c->addresses, &e);
    print_inputs(train.g, &e);
    ls_emit_line(&e, "extern const unsigned char ls_constant_data[], ls_onnx_data[];");
    if (c->target->kind == LS_TARGET_CUDA)
        ls_cuda_program_print(c, &e);
    print_program(c, &train, &eval, &e);
    ls_emit_line(&e, "\nint main(int argc, char **argv)");
    ls_emit_line(&e, "{");
    ls_emit_line(&e, "return ls_trainer_main(&ls_program, argc, argv);");
    ls_emit_line(&e, "}");
    fclose(e.to);
    print_head(c, to);
    if (device == NULL) {
        print_includes(c, to, "#include \"ls_kernel.h\"\n#include \"ls_conv.h\"\n"
                              "#include \"ls_matmul.h\"\n#include \"ls_attention.h\"\n");
        ls_kernel_set_print(set, to);
    } else {
        print_includes(c, to, "#include \"runtime/cuda/ls_cuda_run.h\"\n#include \"runtime/cuda/ls_cudnn.h\"\n"
                       "#include \"runtime/cuda/ls_cublaslt.h\"\n");
        ls_kernel_set_print_host(set, to);
        print_head(c, device);
        print_includes(c, device, "#include \"ls_cuda.h\"\n");
        ls_kernel_set_print(set, device);
    }
    fwrite(tables, 1, size, to);
    free(tables);
    return !ferror(to) && (device == NULL || !ferror(device));
}

static void print_blob(FILE *to, const char *name, const char *file)
{
    fprintf(to, "    .balign 64\n    .global %s\n%s:\n    .incbin \"%s\"\n    .byte 0\n", name, name,
            file);
}

void ls_program_print_data(FILE *to, const char *constant_file, const char *onnx_file,
                           const char *device_file)
{
    fprintf(to, "    .section .rodata\n");
    print_blob(to, "ls_constant_data", constant_file);
    print_blob(to, "ls_onnx_data", onnx_file);
    if (device_file != NULL)
        print_blob(to, "ls_cuda_fatbin", device_file);
    fprintf(to, "    .section .note.GNU-stack,\"\",%%progbits\n");
}
