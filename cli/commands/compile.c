/* cli/commands/compile.c -- lowerset compile: from a model to an executable, an object or readable
 * C. */
#include "base/heap.h"
#include "cli/commands/commands.h"
#include "cli/commands/compile.h"
#include "cli/commands/compile_library.h"
#include "cli/options/optimizer_spec.h"
#include "cli/report/output.h"
#include "cli/job/progress_line.h"
#include "cli/job/staged_job.h"
#include "cli/job/told_times.h"
#include "cli/commands/run_trainer.h"
#include "codegen/program/program_text.h"
#include "codegen/program/rank_tables.h"
#include "codegen/program/stage_tables.h"
#include "codegen/toolchain/attach_file.h"
#include "codegen/toolchain/cuda_toolchain.h"
#include "codegen/toolchain/host_toolchain.h"
#include "compiler/ir/precision.h"
#include "compiler/updates/trained_share.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct Output {         /* the files of one compilation */
    LsEmitKind kind;
    const char *path;           /* the output for the user */
    const char *dir;            /* folder of the generated files */
    const char *base;           /* their name without extension */
    bool temporary;             /* dir is removed at the end */
    LsOnnxForm form;            /* the model, with its initial weights */
} Output;

static const char *const ending[] = {".c",  "_data.S", ".const", "_eval.onnx",
                                     ".cu", ".fatbin", ".h",     "_library.c"};
enum { C_TEXT, DATA_TEXT, CONSTANTS, ONNX, DEVICE_TEXT, DEVICE_CODE };
enum { NFILES = sizeof ending / sizeof *ending };

static const char *file_of(LsArena *a, const Output *out, int k)
{
    return ls_arena_printf(a, "%s/%s%s", out->dir, out->base, ending[k]);
}

static const char *stem(LsArena *a, const char *path)
{
    const char *slash = strrchr(path, '/');
    char *name = ls_arena_strdup(a, slash != NULL ? slash + 1 : path);
    char *dot = strrchr(name, '.');
    if (dot != NULL && dot != name)
        *dot = '\0';
    return name;
}

static int emit_kind(const LsOptions *o, LsEmitKind *kind)
{
    static const char *const word[] = {"exe", "obj", "c", "lib"};
    *kind = LS_EMIT_EXE;
    if (o->output.emit == NULL)
        return 0;
    for (int k = 0; k < 4; k++)
        if (strcmp(o->output.emit, word[k]) == 0) {
            *kind = (LsEmitKind)k;
            return 0;
        }
    fprintf(stderr, "lowerset: --emit: '%s' is not one of exe obj c lib\n", o->output.emit);
    return LS_EXIT_USAGE;
}

static bool make_folder(LsCtx *cx, const char *dir)
{
    if (mkdir(dir, 0777) == 0 || errno == EEXIST)
        return true;
    return ls_error(cx, LS_NOWHERE, LS_E_IO, NULL, "cannot make folder '%s': %s", dir,
                    strerror(errno));
}

/* Names the output and the generated files, which lie beside it for C and else in a folder of their
 * own. */
static void name_files(LsArena *a, const LsOptions *o, Output *out)
{
    const char *name = stem(a, o->model);
    static const char *const suffix[] = {"", ".o", ".c", ""};
    if (out->path == NULL)
        out->path = o->output.file != NULL ? o->output.file
                                           : ls_arena_printf(a, "%s%s", name, suffix[out->kind]);
    out->base = stem(a, out->kind == LS_EMIT_C || out->kind == LS_EMIT_LIB ? out->path : name);
    out->dir = o->output.save_temps;
    if (out->kind == LS_EMIT_C) {
        char *dir = ls_arena_strdup(a, out->path), *slash = strrchr(dir, '/');
        if (slash != NULL)
            *slash = '\0';
        out->dir = slash == NULL ? "." : slash == dir ? "/" : dir;
    }
}

/* Creates the folder of the generated files, if they have one. */
static bool make_place(LsCtx *cx, const LsOptions *o, Output *out)
{
    if (out->dir != NULL)
        return o->output.save_temps == NULL || o->output.dry_run || make_folder(cx, out->dir);
    out->dir = ls_temporary_folder(cx->arena);
    out->temporary = out->dir != NULL;
    if (out->dir == NULL)
        cx->exit_code = LS_EXIT_MODEL;
    return out->temporary;
}

static bool is_same_file(const char *a, const char *b)
{
    struct stat s, t;
    return stat(a, &s) == 0 && stat(b, &t) == 0 && s.st_dev == t.st_dev && s.st_ino == t.st_ino;
}

/* No output may be the model itself, under any name. */
static bool spares_model(LsCtx *cx, const char *model, const Output *out)
{
    const char *hit = is_same_file(out->path, model) ? out->path : NULL;
    for (int k = 0; k < NFILES && hit == NULL && out->dir != NULL; k++)
        if (is_same_file(file_of(cx->arena, out, k), model))
            hit = file_of(cx->arena, out, k);
    return hit == NULL || ls_error(cx, LS_NOWHERE, LS_E_IO, "give another name with -o",
                                   "'%s' is the model itself and would be overwritten", hit);
}

static void remove_files(LsArena *a, const Output *out)
{
    for (int k = 0; k < NFILES && out->temporary; k++)
        unlink(file_of(a, out, k));
    if (out->temporary)
        rmdir(out->dir);
}

static bool write_bytes(LsCtx *cx, const char *path, const void *bytes, size_t n)
{
    FILE *f = fopen(path, "wb");
    bool ok = f != NULL && (n == 0 || fwrite(bytes, 1, n, f) == n);
    if (f != NULL)
        ok &= fclose(f) == 0;
    return ok
           || ls_error(cx, LS_NOWHERE, LS_E_IO, NULL, "cannot write '%s': %s", path,
                       strerror(errno));
}

/* Checks that every parameter and running statistic has an initial value in the file. */
static bool check_initial(LsCtx *cx, const LsAddresses *a)
{
    for (uint32_t k = 0; k < a->nstate; k++)
        if (a->state[k].row.kind < LS_STATE_MOMENT && a->state[k].row.onnx_offset < 0)
            ls_error(cx, (LsWhere){-1, a->state[k].row.t.name, NULL}, LS_E_DATA,
                     "give the model real initial values, e.g. by exporting it with its weights",
                     "has no initial value in the file");
    return cx->nerror == 0;
}

static bool wants_mpi(const LsOptions *o)
{
    return o->ranks.comm != NULL && strcmp(o->ranks.comm, "mpi") == 0;
}

/* What the program's text says, but for the places of its state. */
static LsCode describe(LsJob *job, const Output *out, const LsCudaTool *cuda)
{
    const LsOnnxForm *form = &out->form;
    const bool has_last = job->last_plan.nstep > 0;
    const char *slash = strrchr(job->options->model, '/');
    LsCode code = {.model = slash != NULL ? slash + 1 : job->options->model,
                   .plan_hash = job->report.hash,
                   .strategy = job->plan.strategy,
                   .cut = job->staged != NULL ? &job->staged->plan.cut : NULL,
                   .stage = job->staged != NULL ? job->staged->code : NULL,
                   .ring = job->staged != NULL ? job->staged->plan.ring : 0,
                   .optimizer = ls_options_optimizer(job->options),
                   .loss = job->options->loss.spec != NULL ? job->options->loss.spec : "ce",
                   .schedule = job->options->update.schedule,
                   .precision = ls_is_16(job->pipeline.precision.compute)
                                    ? ls_precision_name(job->pipeline.precision.compute)
                                    : NULL,
                   .target = &job->target,
                   .archs = cuda != NULL ? cuda->archs.text : NULL,
                   .accumulate = job->pipeline.optimizer.accumulate,
                   .parts = job->pipeline.optimizer.parts,
                   .budget = job->budget,
                   .default_lr = ls_options_lr(job->options),
                   .predicted = ls_job_predict(job),
                   .train = {job->train_problem, &job->plan, ls_job_overlaps(job)},
                   .eval = {job->eval_problem, &job->eval_plan, false},
                   .last = {has_last ? job->train_problem : NULL, has_last ? &job->last_plan : NULL,
                            ls_job_overlaps(job)},
                   .update = {job->update_problem,
                              job->update_problem != NULL ? &job->update_plan : NULL, false},
                   .once = {job->shared != NULL ? job->shared->once : NULL,
                            job->shared != NULL ? &job->once_plan : NULL, false},
                   .mpi = wants_mpi(job->options),
                   .library = out->kind == LS_EMIT_LIB,
                   .onnx_bytes = (size_t)(form->bytes - form->tail),
                   .onnx_tail = (size_t)form->tail,
                   .onnx_shift = (size_t)form->shift,
                   .adapters = job->pipeline.import.adapters,
                   .onnx_attached = out->kind == LS_EMIT_EXE};
    if (job->staged != NULL)
        code.train = (LsCodePhase){.problem = NULL};
    return code;
}

/* Gives the state its places. False after a diagnostic. */
static bool place_state(LsJob *job, const Output *out, LsCode *code, bool on_host)
{
    LsCtx *cx = &job->cx;
    code->addresses = ls_addresses_new(cx, job->train, job->target.real_bytes, &out->form,
                                       code->onnx_attached && on_host);
    if (job->shared != NULL)
        ls_address_shared(code->addresses, job->shared->result, job->shared->nresult);
    if (job->staged != NULL)
        code->copy_at =
            ls_copies_place(&job->staged->plan.cut, job->train_problem, code->addresses);
    if (job->update_problem != NULL && (code->ranks = ls_rank_layout(cx, code)) == NULL)
        return false;
    return check_initial(cx, code->addresses);
}

/* C text, assembler text; for GPUs the device's text. dry: all checks are made, nothing is
 * written. */
static bool print_texts(LsCtx *cx, const Output *out, LsCode *code, bool has_device, bool dry)
{
    FILE *to[3] = {NULL};       /* C, assembler and device text */
    static const int file[3] = {C_TEXT, DATA_TEXT, DEVICE_TEXT};
    bool ok = true;
    for (int k = 0; k < (has_device ? 3 : 2); k++)
        ok &= (to[k] = fopen(dry ? "/dev/null" : file_of(cx->arena, out, file[k]), "w")) != NULL;
    if (ok) {
        ok = ls_program_print(cx, code, to[0], to[2]);
        ls_program_print_data(to[1], file_of(cx->arena, out, CONSTANTS),
                              code->onnx_attached ? NULL : file_of(cx->arena, out, ONNX),
                              has_device ? file_of(cx->arena, out, DEVICE_CODE) : NULL);
    } else {
        ls_error(cx, LS_NOWHERE, LS_E_IO, NULL, "cannot write in '%s': %s", out->dir,
                 strerror(errno));
    }
    for (int k = 0; k < 3; k++)
        if (to[k] != NULL)
            ok &= fclose(to[k]) == 0;
    return ok;
}

/* The texts, constants, the evaluation form as an ONNX file. */
static bool write_program(LsJob *job, Output *out, const LsCudaTool *cuda)
{
    LsCtx *cx = &job->cx;
    if (!ls_onnx_eval_form(cx, job->options->model, &job->pipeline.import, &out->form))
        return false;
    LsCode code = describe(job, out, cuda);
    const bool dry = job->options->output.dry_run;
    if (!place_state(job, out, &code, cuda == NULL)
        || !print_texts(cx, out, &code, cuda != NULL, dry))
        return false;
    if (dry)
        return true;
    if (code.library && !ls_library_write(job, &code, out->dir, out->base))
        return false;
    /* What is attached to the program need not be a file of its own, which may be large. */
    const bool apart = !code.onnx_attached || job->options->output.save_temps != NULL;
    return write_bytes(cx, file_of(cx->arena, out, CONSTANTS), code.addresses->constant,
                       code.addresses->nconst)
           && (!apart || ls_onnx_form_write(cx, &out->form, file_of(cx->arena, out, ONNX)));
}

/* The linker's output file: a name beside the output, renamed once complete. A linker cannot write
 * to a pipe, and removes existing files; so an output that is no regular file gets a copy. */
static const char *place_program(LsArena *a, const Output *out)
{
    const char *part = ls_output_part(a, out->path);
    return part == out->path ? ls_arena_printf(a, "%s/%s.program", out->dir, out->base) : part;
}

static LsToolchain toolchain(const LsOptions *o, const LsCudaTool *cuda)
{
    return (LsToolchain){.cc = o->machine.cc,
                         .march = o->machine.march,
                         .opt = o->machine.opt,
                         .verbose = o->output.verbose,
                         .dry_run = o->output.dry_run,
                         .cuda = cuda,
                         .mpi = wants_mpi(o)};
}

static bool build(LsJob *job, const Output *out, const LsCudaTool *cuda)
{
    const LsOptions *o = job->options;
    LsCtx *cx = &job->cx;
    LsToolchain tool = toolchain(o, cuda);
    if (out->kind == LS_EMIT_LIB) {
        const bool ok = ls_library_emit(job, &tool, out->dir, out->base, out->path);
        ls_stage_end(o);
        return ok;
    }
    if (out->kind != LS_EMIT_C) {
        const char *part = place_program(cx->arena, out);
        bool ok = ls_toolchain_build(cx, &tool, out->dir, out->base, out->kind, part) &&
                  (out->kind != LS_EMIT_EXE || o->output.dry_run ||
                   ls_attach_form(cx, part, &out->form));
        ls_stage_end(o);
        return o->output.dry_run ? ok : ls_output_take(part, out->path, ok);
    }
    const char *runtime = ls_arena_printf(cx->arena, "%s/runtime", out->dir);
    if (!o->output.dry_run && !ls_toolchain_copy_runtime(cx, &tool, runtime))
        return false;
    ls_stage_end(o);
    if (!o->output.quiet)
        fprintf(stderr, "%s\n", ls_toolchain_hint(cx, &tool, out->dir, out->base, runtime));
    return true;
}

static double step_ns(const LsJob *job)
{
    return job->staged != NULL ? ls_staged_step_ns(job) : ls_job_step_ns(job);
}

static void summary(LsJob *job, const Output *out)
{
    LsArena *a = job->cx.arena;
    fprintf(stderr,
            "%s -> %s: plan %s, strategy %s, state %s + arena %s + input %s = %s, "
            "recomputation %.1f %%%s, step %.4g ms (%s), by the costs of %s\n",
            job->options->model, out->path, job->report.hash, job->plan.strategy,
            ls_bytes_text(a, job->state_bytes), ls_bytes_text(a, job->arena_bytes),
            ls_bytes_text(a, job->input_bytes),
            ls_bytes_text(a, ls_job_fixed_bytes(job) + job->arena_bytes),
            100 * ls_plan_overhead(&job->plan), ls_job_gap_text(job), step_ns(job) * 1e-6,
            ls_job_told_of(job), job->costs);
    fprintf(
        stderr, "optimizer %s\n",
        ls_optimizer_state_text(job->train, job->pipeline.optimizer.kind, job->target.real_bytes));
}

/* Prints the next step for the user, in one line; for C the line above shows how to build. */
static void conclude(const LsJob *job, const Output *out)
{
    LsArena *a = job->cx.arena;
    int64_t total = ls_job_fixed_bytes(job) + job->arena_bytes;
    fprintf(
        stderr, "%s: %s %s in all%s%s, recomputation %.2f %%%s of a step of about %.3g ms (%s)",
        out->path, job->options->output.dry_run ? "would take" : "takes", ls_bytes_text(a, total),
        ls_staged_text(job),
        job->budget > 0 ? ls_arena_printf(a, " (budget %s)", ls_bytes_text(a, job->budget)) : "",
        100 * ls_plan_overhead(&job->plan), job->options->memory.prove ? ls_job_gap_text(job) : "",
        step_ns(job) * 1e-6, ls_job_told_of(job));
    fprintf(stderr, "; %s", ls_trained_share_text(job->train));
    if (!job->options->output.dry_run && out->kind == LS_EMIT_EXE)
        fprintf(stderr, "; next: %s%s --data FILE, or --help",
                strchr(out->path, '/') == NULL ? "./" : "", out->path);
    fprintf(stderr, "\n");
}

/* Makes every check that is possible before planning: 0 or the exit code, after diagnostics. */
static int prepare(LsJob *job, Output *out)
{
    const LsOptions *o = job->options;
    LsToolchain tool = toolchain(o, NULL);
    name_files(job->cx.arena, o, out);
    int code = out->kind == LS_EMIT_C || o->output.dry_run || ls_output_check(out->path)
                   ? 0
                   : LS_EXIT_MODEL;
    if (code == 0 && o->output.save_temps != NULL)
        code = ls_output_folder(o->output.save_temps);
    if (code != 0)
        return code;
    bool ok = spares_model(&job->cx, o->model, out) &&
              (o->output.dry_run || out->kind == LS_EMIT_C || ls_toolchain_find(&job->cx, &tool));
    return ok ? 0 : job->cx.exit_code;
}

/* 0 or the exit code, after diagnostics. */
static int make(LsJob *job, Output *out)
{
    const LsOptions *o = job->options;
    LsCudaTool tool = {.nvcc = o->machine.nvcc,
                       .lines = o->output.save_temps != NULL,
                       .verbose = o->output.verbose,
                       .dry_run = o->output.dry_run};
    const LsCudaTool *cuda = job->target.kind == LS_TARGET_CUDA ? &tool : NULL;
    bool ok = (cuda == NULL || ls_cuda_archs(&job->cx, o->machine.arch, &tool.archs))
              && make_place(&job->cx, o, out) && spares_model(&job->cx, o->model, out);
    char *said = NULL;          /* progress messages on a terminal */
    size_t length = 0;
    FILE *log = job->cx.log == NULL && ls_stage_passes(o) ? ls_text_open(&said, &length) : NULL;
    if (job->cx.log == NULL)
        ls_progress_line(o, "building %s", out->path);
    job->cx.log = log != NULL ? log : job->cx.log;
    ok = ok && write_program(job, out, cuda) && build(job, out, cuda);
    ls_stage_end(o);
    if (log != NULL) {
        job->cx.log = NULL;
        ls_text_close(log, &said);
        fputs(said, stderr);
        free(said);
    }
    remove_files(job->cx.arena, out);
    return ok ? 0 : job->cx.exit_code != 0 ? job->cx.exit_code : LS_EXIT_MODEL;
}

int ls_compile_job(LsJob *job, const char *path)
{
    Output out = {.kind = LS_EMIT_EXE, .path = path};
    name_files(job->cx.arena, job->options, &out);
    return make(job, &out);
}

int ls_compile_plan(LsJob *job, const LsPlan *plan, int64_t budget, const char *path)
{
    if (!ls_job_audited(job, job->dag, plan))
        return ls_job_failed(job);
    job->plan = *plan;
    job->budget = budget;
    ls_job_set_arena(job);
    ls_plan_hash(plan, job->report.hash);
    return ls_compile_job(job, path);
}

int ls_compile_main(int argc, char **argv)
{
    LsOptions o = {0};
    LsJob job;
    Output out = {0};
    int code = ls_options_parse(&o, LS_CMD_COMPILE, argc, argv);
    if (code == 0)
        code = emit_kind(&o, &out.kind);
    if (code == 0 && ls_job_is_graph(o.model)) {
        fprintf(stderr, "lowerset: '%s' is a training graph: lowerset plan takes it, compile needs "
                "the ONNX model\n", o.model);
        return LS_EXIT_MODEL;
    }
    if (code != 0)
        return code;
    code = ls_job_start(&job, &o, false);
    code = code != 0 ? code : ls_staged_check(&job);
    if (code == 0 && out.kind == LS_EMIT_LIB)
        code = ls_library_check(&job);
    code = code != 0 ? code : prepare(&job, &out);
    code = code != 0 ? code : ls_options_stages(&o) > 1 ? ls_staged_plan(&job) : ls_job_plan(&job);
    code = code != 0 ? code : make(&job, &out);
    if (code == 0 && (o.output.verbose || !o.output.quiet) && job.staged == NULL)
        ls_job_tell_people(&job);
    if (code == 0 && o.output.verbose)
        summary(&job, &out);
    if (code == 0 && !o.output.quiet)
        conclude(&job, &out);
    ls_job_end(&job);
    return code;
}
