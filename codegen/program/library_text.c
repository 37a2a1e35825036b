/* codegen/program/library_text.c -- see the header. Both texts have %P for the prefix in small
 * letters, and the header %U for that in capitals. */
#include "codegen/program/library_text.h"

#include "runtime/ls_division.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

const char *ls_library_prefix(LsArena *a, const char *base)
{
    char *name =
        ls_arena_printf(a, "%s%s", isdigit((unsigned char)base[0]) ? "net_" : "", base);
    for (char *c = name; *c != '\0'; c++)
        *c = isalnum((unsigned char)*c) ? (char)tolower((unsigned char)*c) : '_';
    return name;
}

bool ls_library_prefix_is(const char *prefix)
{
    if (!isalpha((unsigned char)prefix[0]))
        return false;
    for (const char *c = prefix; *c != '\0'; c++)
        if (!isalnum((unsigned char)*c) && *c != '_')
            return false;
    return true;
}

static void print(FILE *to, const char *text, const char *prefix)
{
    for (; *text != '\0'; text++) {
        const char kind = *text == '%' ? text[1] : '\0';
        if (kind != 'P' && kind != 'U') {
            fputc(*text, to);
            continue;
        }
        for (const char *c = prefix; *c != '\0'; c++)
            fputc(kind == 'U' ? toupper((unsigned char)*c) : *c, to);
        text++;
    }
}

static const char types[] =
    "\n"
    "/* Numbers of errors. */\n"
    "enum {\n"
    "    %U_OK = 0,\n"
    "    %U_E_SYSTEM = 1,       /* no memory, no threads, a file that cannot be written */\n"
    "    %U_E_CALL = 2,         /* an argument that is wrong */\n"
    "    %U_E_DIVERGED = 7,     /* the loss is not finite */\n"
    "    %U_E_DATA = 8,         /* a label out of range; a checkpoint that cannot be read */\n"
    "};\n"
    "typedef struct %P_error { int code; char text[600]; } %P_error;\n"
    "\n"
    "typedef enum { %U_REAL, %U_I64, %U_I32, %U_BOOL, %U_U8, %U_BF16 } %P_type;\n"
    "typedef enum {\n"
    "    %U_INPUT, %U_PARAMETER, %U_FROZEN, %U_STATISTIC, %U_MOMENT, %U_AVERAGE, %U_SUM, "
    "%U_TARGET,\n"
    "    %U_OUTPUT\n"
    "} %P_role;\n"
    "typedef struct %P_tensor {\n"
    "    const char *name;\n"
    "    %P_role role;\n"
    "    %P_type type;           /* reals have %U_REAL_BYTES bytes,\n"
    "                             * %U_BF16 (moments alone) are bits of bfloat16 in 2 */\n"
    "    int channels_last;      /* data lies as N, spatial ..., C although dim is N, C, "
    "spatial ... */\n"
    "    int rank;\n"
    "    int64_t dim[8];         /* dim[0] of an input that has samples: those of a "
    "micro-batch */\n"
    "    void *data;             /* of state: its current values, in the state; else NULL */\n"
    "} %P_tensor;\n"
    "\n"
    "typedef struct %P %P;      /* an instance; each is for one thread at a time */\n"
    "\n"
    "/* The macros above as functions. */\n"
    "size_t %P_state_bytes(void);\n"
    "size_t %P_arena_bytes(void);\n"
    "size_t %P_align(void);\n"
    "int64_t %P_batch(void);\n"
    "int64_t %P_batch_least(void);\n"
    "int64_t %P_micro_batch(void);\n"
    "int %P_real_bytes(void);\n"
    "int %P_on_gpu(void);\n"
    "int %P_private(void);\n"
    "double %P_rate(void);\n"
    "int %P_inputs(void);\n"
    "int %P_outputs(void);\n"
    "int %P_tensors(void);\n"
    "const char *%P_plan_hash(void);\n"
    "\n"
    "/* With %U_ON_GPU an instance takes its memory on the GPU itself: state and arena may "
    "be NULL,\n"
    " * threads is not read, and tensors of the state lie on the GPU. Arrays of input may "
    "lie there, "
    "too,\n"
    " * once all work that writes them was issued.\n"
    " *\n"
    " * An instance in the caller's memory, which it uses until %P_close: both at multiples of\n"
    " * %U_ALIGN bytes. Weights are those of the model's file. threads: that compute, the "
    "caller's\n"
    " * among them. seed: of dropout. NULL: an error. */\n"
    "%P *%P_open(void *state, size_t state_bytes, void *arena, size_t arena_bytes, int threads,\n"
    "    uint64_t seed, %P_error *error);\n"
    "/* The same on the caller's threads: parallel_for calls task(of, k) once for each k in "
    "[0, tasks),\n"
    " * in any order on any threads, and returns when all have ended. Results do not depend on "
    "it. */\n"
    "typedef void (*%P_parallel_for)(void *context, int tasks, void (*task)(void *of, int k), "
    "void *of);\n"
    "%P *%P_open_with(void *state, size_t state_bytes, void *arena, size_t arena_bytes, int "
    "tasks,\n"
    "    %P_parallel_for parallel_for, void *context, uint64_t seed, %P_error *error);\n"
    "void %P_close(%P *self);\n"
    "\n"
    "/* The functions below return 0, or the error's number. error and loss may be NULL.\n"
    " *\n"
    " * One update. input: an array for each of the %U_INPUTS inputs, in the order of "
    "%P_input, rows\n"
    " * of the samples in logical order. samples: %U_BATCH_LEAST to %U_BATCH; fewer\n"
    " * make the last batch short. loss: of these samples, before the update; NULL: it is "
    "not waited\n"
    " * for, a GPU computes on, and a loss that is not finite is the error of a later call. */\n"
    "int %P_step(%P *self, const void *const input[], int64_t samples, double rate, double *loss,\n"
    "    %P_error *error);\n"
    "/* Waits for all updates. loss: of the last one, or NULL. */\n"
    "int %P_wait(%P *self, double *loss, %P_error *error);\n"
    "/* The loss of the evaluation form over any number of samples. */\n"
    "int %P_evaluate(%P *self, const void *const input[], int64_t samples, double *loss,\n"
    "    %P_error *error);\n"
    "/* The model's outputs in evaluation form for any number of samples. Targets may be NULL. "
    "output: an\n"
    " * array for each of the %U_OUTPUTS outputs, in the order of %P_output, or NULL. It gets\n"
    " * the rows of all samples in logical order; if its first axis has no samples, its value "
    "for the\n"
    " * last batch. */\n"
    "int %P_predict(%P *self, const void *const input[], int64_t samples, void *const output[],\n"
    "    %P_error *error);\n"
    "/* The gradients of an update over these samples, before clipping; the state stays as it is.\n"
    " * gradient: an array for each of the %U_TENSORS tensors of the state, in logical order, or\n"
    " * NULL. */\n"
    "int %P_gradients(%P *self, const void *const input[], int64_t samples, void *const "
    "gradient[],\n"
    "    double *loss, %P_error *error);\n"
    "\n"
    "/* The initial weights again. */\n"
    "int %P_begin(%P *self, uint64_t seed, %P_error *error);\n"
    "/* Checkpoints of the trainer: a run goes on in either. */\n"
    "int %P_save(%P *self, const char *path, %P_error *error);\n"
    "int %P_load(%P *self, const char *path, %P_error *error);\n"
    "/* The same in memory. room: at least %P_save_bytes, which may grow with the updates. */\n"
    "int64_t %P_save_bytes(%P *self);\n"
    "int %P_save_to(%P *self, void *to, size_t room, %P_error *error);\n"
    "int %P_load_from(%P *self, const void *from, size_t bytes, %P_error *error);\n"
    "int64_t %P_updates(const %P *self);      /* done */\n"
    "\n"
    "/* Input k, output k, or tensor k of the state, from 0: 0, or %U_E_CALL if there is none. */\n"
    "int %P_input(int k, %P_tensor *to);\n"
    "int %P_output(int k, %P_tensor *to);\n"
    "int %P_state(%P *self, int k, %P_tensor *to);\n"
    "/* Tensor k of the state in logical order. */\n"
    "int %P_read(%P *self, int k, void *to, %P_error *error);\n"
    "int %P_write(%P *self, int k, const void *from, %P_error *error);\n";

static const char private_types[] =
    "\n"
    "/* Private training: %P_step takes all data, and draws the samples of the update itself. "
    "The updates\n"
    " * so far are (epsilon, delta)-private. %P_seed_noise, before the first step: draws and "
    "noise of that\n"
    " * seed, to repeat a run, which is not private then. */\n"
    "int %P_spent(%P *self, double *epsilon, double *delta, %P_error *error);\n"
    "int %P_seed_noise(%P *self, int64_t seed, %P_error *error);\n";

static const char gpu_types[] =
    "\n"
    "/* A stream of the caller's on the GPU: a cudaStream_t, NULL for the default one. Work\n"
    " * of the calls that follow begins after what was issued there before the call, and what\n"
    " * is issued there after the call begins when its work is done. The host waits for\n"
    " * neither. It is good for all calls until another one is set; one that is being\n"
    " * captured is refused. Without one, a call with arrays on the GPU waits for all work\n"
    " * there.\n"
    " *\n"
    " * Arrays on the GPU are copied within it, if they are reals, or integers that nothing\n"
    " * checks: also for short batches, and where the net has channels last. Booleans, and\n"
    " * classes and indices, which are checked, are copied to the host, and the call waits\n"
    " * for them: better give them as arrays of the host. An array of the host is the\n"
    " * caller's again when the call returns, one of the GPU in the order of the stream. With\n"
    " * NULL for the loss, %P_step waits for all but its last batch, with a loss scale for\n"
    " * that, too. */\n"
    "int %P_set_stream(%P *self, void *stream, %P_error *error);\n"
    "/* Where the loss of %P_step lies on the GPU, for work on the stream: a real, not times\n"
    " * a loss scale. The place is always the same, and its value is good until the next call\n"
    " * that computes. %U_E_CALL where an update has several batches (--accumulate,\n"
    " * --microbatches), as the host combines their losses. */\n"
    "int %P_loss_on_gpu(%P *self, const void **at, %P_error *error);\n";

static const char end[] =
    "\n"
    "#ifdef __cplusplus\n"
    "}\n"
    "#endif\n"
    "#endif\n";

static const char functions[] =
    "#include <string.h>\n"
    "\n"
    "extern const LsProgram ls_program;\n"
    "\n"
    "static int told(const LsError *e, %P_error *to)\n"
    "{\n"
    "    if (to != NULL) {\n"
    "        to->code = e->code;\n"
    "        memcpy(to->text, e->text, sizeof to->text);\n"
    "    }\n"
    "    return e->code;\n"
    "}\n"
    "\n"
    "static int tensor(const LsTensor *t, %P_role role, void *data, %P_tensor *to)\n"
    "{\n"
    "    const int real = t->type == LS_DT_BF16 || t->type == LS_DT_F16;\n"
    "    const int bytes = t->type == LS_DT_U8, moment = real && role == %U_MOMENT;\n"
    "    *to = (%P_tensor){t->name, role,\n"
    "        moment ? %U_BF16 : real ? %U_REAL : bytes ? %U_U8 : (%P_type)t->type,\n"
    "        data != NULL && t->channels_last && t->rank >= 3, t->rank, {0}, data};\n"
    "    memcpy(to->dim, t->dim, sizeof to->dim);\n"
    "    return %U_OK;\n"
    "}\n"
    "\n"
    "size_t %P_state_bytes(void) { return %U_STATE_BYTES; }\n"
    "size_t %P_arena_bytes(void) { return %U_ARENA_BYTES; }\n"
    "size_t %P_align(void) { return %U_ALIGN; }\n"
    "int64_t %P_batch(void) { return %U_BATCH; }\n"
    "int64_t %P_batch_least(void) { return %U_BATCH_LEAST; }\n"
    "int64_t %P_micro_batch(void) { return %U_MICRO_BATCH; }\n"
    "int %P_real_bytes(void) { return %U_REAL_BYTES; }\n"
    "int %P_on_gpu(void) { return %U_ON_GPU; }\n"
    "int %P_private(void) { return %U_PRIVATE; }\n"
    "double %P_rate(void) { return %U_RATE; }\n"
    "int %P_inputs(void) { return %U_INPUTS; }\n"
    "int %P_outputs(void) { return %U_OUTPUTS; }\n"
    "int %P_tensors(void) { return %U_TENSORS; }\n"
    "const char *%P_plan_hash(void) { return %U_PLAN_HASH; }\n"
    "\n"
    "static %P *opened(LsNetMemory memory, LsNetThreads threads, uint64_t seed, %P_error *error)\n"
    "{\n"
    "    LsError e = {0};\n"
    "    LsNet *made = ls_net_open(&ls_program, memory, threads, seed, &e);\n"
    "    told(&e, error);\n"
    "    return (%P *)made;\n"
    "}\n"
    "%P *%P_open(void *state, size_t state_bytes, void *arena, size_t arena_bytes, int threads,\n"
    "    uint64_t seed, %P_error *error)\n"
    "{\n"
    "    return opened((LsNetMemory){state, arena, state_bytes, arena_bytes},\n"
    "        (LsNetThreads){threads, NULL, NULL}, seed, error);\n"
    "}\n"
    "%P *%P_open_with(void *state, size_t state_bytes, void *arena, size_t arena_bytes, int "
    "tasks,\n"
    "    %P_parallel_for parallel_for, void *context, uint64_t seed, %P_error *error)\n"
    "{\n"
    "    return opened((LsNetMemory){state, arena, state_bytes, arena_bytes},\n"
    "        (LsNetThreads){tasks, parallel_for, context}, seed, error);\n"
    "}\n"
    "void %P_close(%P *self) { ls_net_close((LsNet *)self); }\n"
    "\n"
    "/* A function that fails by an LsError. */\n"
    "#define CALL(...) LsError e = {0}; __VA_ARGS__; return told(&e, error)\n"
    "#define NET ((LsNet *)self)\n"
    "\n"
    "int %P_step(%P *self, const void *const input[], int64_t samples, double rate, double *loss,\n"
    "    %P_error *error)\n"
    "{\n"
    "    CALL(ls_net_step(NET, input, samples, rate, loss, &e));\n"
    "}\n"
    "int %P_wait(%P *self, double *loss, %P_error *error) { CALL(ls_net_wait(NET, loss, &e)); }\n"
    "int %P_evaluate(%P *self, const void *const input[], int64_t samples, double *loss,\n"
    "    %P_error *error)\n"
    "{\n"
    "    CALL(ls_net_evaluate(NET, input, samples, loss, &e));\n"
    "}\n"
    "int %P_predict(%P *self, const void *const input[], int64_t samples, void *const output[],\n"
    "    %P_error *error)\n"
    "{\n"
    "    CALL(ls_net_predict(NET, input, samples, output, &e));\n"
    "}\n"
    "int %P_gradients(%P *self, const void *const input[], int64_t samples, void *const "
    "gradient[],\n"
    "    double *loss, %P_error *error)\n"
    "{\n"
    "    CALL(ls_net_gradients(NET, input, samples, gradient, loss, &e));\n"
    "}\n"
    "int %P_begin(%P *self, uint64_t seed, %P_error *error) { CALL(ls_net_begin(NET, seed, "
    "&e)); }\n"
    "int %P_save(%P *self, const char *path, %P_error *error) { CALL(ls_net_save(NET, path, "
    "&e)); }\n"
    "int %P_load(%P *self, const char *path, %P_error *error) { CALL(ls_net_load(NET, path, "
    "&e)); }\n"
    "int64_t %P_save_bytes(%P *self)\n"
    "{\n"
    "    LsError e = {0};\n"
    "    int64_t bytes = 0;\n"
    "    ls_net_save_to(NET, NULL, 0, &bytes, &e);\n"
    "    return bytes;\n"
    "}\n"
    "int %P_save_to(%P *self, void *to, size_t room, %P_error *error)\n"
    "{\n"
    "    int64_t bytes;\n"
    "    CALL(ls_net_save_to(NET, to, room > 0 ? room : 1, &bytes, &e));\n"
    "}\n"
    "int %P_load_from(%P *self, const void *from, size_t bytes, %P_error *error)\n"
    "{\n"
    "    CALL(ls_net_load_from(NET, from, bytes, &e));\n"
    "}\n"
    "int64_t %P_updates(const %P *self) { return ls_net_updates((const LsNet *)self); }\n"
    "\n"
    "int %P_input(int k, %P_tensor *to)\n"
    "{\n"
    "    if (k < 0 || k >= %U_INPUTS)\n"
    "        return %U_E_CALL;\n"
    "    const LsInput *i = &ls_program.input[k];\n"
    "    return tensor(&i->t, i->is_label ? %U_TARGET : %U_INPUT, NULL, to);\n"
    "}\n"
    "int %P_output(int k, %P_tensor *to)\n"
    "{\n"
    "    const LsTensor *t = k < 0 ? NULL : ls_net_output(&ls_program, (uint32_t)k);\n"
    "    return t == NULL ? %U_E_CALL : tensor(t, %U_OUTPUT, NULL, to);\n"
    "}\n"
    "int %P_state(%P *self, int k, %P_tensor *to)\n"
    "{\n"
    "    const LsStateTensor *s;\n"
    "    void *at = k < 0 ? NULL : ls_net_state(NET, (uint32_t)k, &s);\n"
    "    return at == NULL ? %U_E_CALL\n"
    "        : tensor(&s->t, (%P_role)(%U_PARAMETER + (int)s->kind), at, to);\n"
    "}\n"
    "int %P_read(%P *self, int k, void *to, %P_error *error)\n"
    "{\n"
    "    CALL(ls_net_read(NET, (uint32_t)k, to, &e));\n"
    "}\n"
    "int %P_write(%P *self, int k, const void *from, %P_error *error)\n"
    "{\n"
    "    CALL(ls_net_write(NET, (uint32_t)k, from, &e));\n"
    "}\n";

static const char private_functions[] =
    "\n"
    "int %P_spent(%P *self, double *epsilon, double *delta, %P_error *error)\n"
    "{\n"
    "    CALL(ls_net_spent(NET, epsilon, delta, &e));\n"
    "}\n"
    "int %P_seed_noise(%P *self, int64_t seed, %P_error *error)\n"
    "{\n"
    "    CALL(ls_net_seed_noise(NET, seed, &e));\n"
    "}\n";

static const char gpu_functions[] =
    "\n"
    "int %P_set_stream(%P *self, void *stream, %P_error *error)\n"
    "{\n"
    "    CALL(ls_net_set_stream(NET, stream, &e));\n"
    "}\n"
    "int %P_loss_on_gpu(%P *self, const void **at, %P_error *error)\n"
    "{\n"
    "    CALL(ls_net_loss_there(NET, at, &e));\n"
    "}\n";

static bool is_on_gpu(const LsCode *c) { return c->target->kind == LS_TARGET_CUDA; }

static bool is_private(const LsCode *c) { return c->addresses->train->privacy.on; }

/* One macro: PREFIX_NAME. */
static void define(FILE *to, const char *prefix, const char *name, int64_t value)
{
    print(to, "#define %U_", prefix);
    fprintf(to, "%s %" PRId64 "\n", name, value);
}

/* The larger of all phases. */
static int64_t arena_bytes(const LsCode *c)
{
    const LsPlan *plan[] = {c->train.plan, c->last.plan, c->eval.plan};
    int64_t arena = 0;
    for (int k = 0; k < 3; k++)
        arena = plan[k] != NULL && plan[k]->arena > arena ? plan[k]->arena : arena;
    return arena;
}

void ls_library_print_header(const LsCode *c, const char *prefix, FILE *to)
{
    const LsGraph *g = c->addresses->train;
    const int64_t parts = c->parts > 1 ? c->parts : 1, most = c->accumulate > 1 ? c->accumulate : 1;
    print(to, "/* %P.h -- the training step of ", prefix);
    fprintf(to, "%s: %s, %s. Written by lowerset. */\n", c->model, c->loss, c->optimizer);
    print(to, "#ifndef %U_H\n#define %U_H\n\n#include <stddef.h>\n#include <stdint.h>\n\n", prefix);
    fprintf(to, "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n");
    define(to, prefix, "STATE_BYTES", c->addresses->state_bytes);
    define(to, prefix, "ARENA_BYTES", arena_bytes(c));
    define(to, prefix, "ALIGN", 64);
    define(to, prefix, "MICRO_BATCH", g->batch);        /* samples */
    if (is_private(c)) {
        define(to, prefix, "BATCH", LS_NET_MOST);       /* all data */
        define(to, prefix, "BATCH_LEAST", 1);
    } else {
        define(to, prefix, "BATCH", g->batch * parts * most);
        define(to, prefix, "BATCH_LEAST", g->batch * parts * (most - 1) + 1);
    }
    define(to, prefix, "REAL_BYTES", c->target->real_bytes);
    define(to, prefix, "PRIVATE", is_private(c));
    define(to, prefix, "ON_GPU", is_on_gpu(c));
    define(to, prefix, "INPUTS", g->ninput);
    define(to, prefix, "OUTPUTS", c->eval.problem != NULL ? c->eval.problem->g->noutput : 0);
    define(to, prefix, "TENSORS", c->addresses->nstate);
    print(to, "/* of --lr, else the optimizer's own */\n#define %U_RATE", prefix);
    fprintf(to, " %.17g\n", c->default_lr);
    print(to, "#define %U_PLAN_HASH", prefix);
    fprintf(to, " \"%s\"\n", c->plan_hash);
    print(to, types, prefix);
    if (is_private(c))
        print(to, private_types, prefix);
    if (is_on_gpu(c))
        print(to, gpu_types, prefix);
    print(to, end, prefix);
}

void ls_library_print_functions(const LsCode *c, const char *prefix, const char *header, FILE *to)
{
    fprintf(to, "#include \"runtime/library/net.h\"\n#include \"%s\"\n", header);
    print(to, functions, prefix);
    if (is_private(c))
        print(to, private_functions, prefix);
    if (is_on_gpu(c))
        print(to, gpu_functions, prefix);
}
