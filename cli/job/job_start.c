/* cli/job/job_start.c -- sets up a job from its options: the target, the machine that gives costs,
 * and the chooser of convolution engines. */
#include "cli/job/job_parts.h"

#include "cli/job/machine_choice.h"
#include "codegen/cuda/conv_plan.h"
#include "codegen/toolchain/cuda_toolchain.h"
#include "cli/options/option_values.h"

#include <string.h>

/* Training or evaluation computes in bfloat16. */
static bool has_brains(const LsOptions *o)
{
    LsPrecisionSpec p;
    return ls_options_precision(o, &p) == 0 &&
           (p.compute == LS_BF16 ||
            (o->machine.eval_precision != NULL && strcmp(o->machine.eval_precision, "bf16") == 0));
}

static bool choose_target(LsJob *job)
{
    static const char *const kind[] = {"cpu", "cuda", NULL}, *const sums[] = {"auto", "pairs",
                                                                              "tiles", NULL};
    const LsOptions *o = job->options;
    int k = ls_options_word("--target", o->machine.target, kind, 0);
    LsPrecisionSpec p;
    const int order = ls_options_word("--bf16-sums", o->machine.bf16_sums, sums, 0);
    if (k < 0 || order < 0 || ls_options_precision(o, &p) != 0)
        return false;
    job->target = (LsTarget){.kind = k == 1 ? LS_TARGET_CUDA : LS_TARGET_CPU,
                             .real_bytes = p.real_bytes, .tf32 = p.tf32, .sums = (LsDotSums)order};
    const bool eval =
        o->machine.eval_precision != NULL && strcmp(o->machine.eval_precision, "f32") != 0;
    if (eval && k == 1)
        fprintf(stderr, "lowerset: --eval-precision=%s is for --target=cpu so far\n",
                o->machine.eval_precision);
    else if (k == 1 && (o->samples.privacy != NULL ||
                        (o->samples.grads != NULL && strcmp(o->samples.grads, "mean") != 0)))
        fprintf(stderr, "lowerset: %s: gradients of samples are for --target=cpu so far\n",
                o->samples.privacy != NULL ? "--dp" : "--grads");
    else if (o->machine.bf16_sums != NULL && (k == 1 || !has_brains(o)))
        fprintf(stderr, "lowerset: --bf16-sums is for --target=cpu with --precision=bf16\n");
    else if (p.tf32 && k != 1)
        fprintf(stderr,
                "lowerset: --precision=tf32 is for products on NVIDIA GPUs (--target=cuda); the "
                "CPU multiplies full f32\n");
    else
        return true;
    return false;
}

/* A described machine of the newest architecture among the targets of the code. */
static const char *described(const LsCudaArchs *archs)
{
    int newest = archs->arch[archs->n - 1].number;
    return newest >= 90 ? "h200" : newest == 80 ? "a100" : newest == 86 ? "rtx4090" : "l4";
}

/* NVIDIA's libraries multiply bfloat16 from sm_80 on. */
static bool has_old_arch(const LsJob *job, const LsCudaArchs *archs)
{
    enum { FIRST = 80 };
    LsPrecisionSpec p;
    if (ls_options_precision(job->options, &p) != 0 || p.compute != LS_BF16)
        return false;
    for (int k = 0; k < archs->n; k++)
        if (archs->arch[k].number < FIRST) {
            fprintf(stderr,
                    "lowerset: --arch=%d: --precision=bf16 needs GPUs from sm_%d on; f16 runs on "
                    "older ones\n",
                    archs->arch[k].number, FIRST);
            return true;
        }
    return false;
}

/* Products of bfloat16 go to the tiles of this processor. What is built for another one does not
 * depend on this. */
static bool has_tiles(const LsJob *job)
{
    const LsOptions *o = job->options;
    return job->target.kind == LS_TARGET_CPU && has_brains(o) &&
           job->target.sums != LS_DOTS_PAIRS &&
           (o->machine.march == NULL || strcmp(o->machine.march, "native") == 0) &&
           ls_machine_has_tiles();
}

/* Chooses the machine that gives plans their costs. */
static int choose_machine(LsJob *job)
{
    const char *from, *name = job->options->machine.name;
    bool cuda = job->target.kind == LS_TARGET_CUDA;
    LsCudaArchs archs;
    if (cuda &&
        (!ls_cuda_archs(&job->cx, job->options->machine.arch, &archs) || has_old_arch(job, &archs)))
        return LS_EXIT_USAGE;
    int code = ls_machine_choose(job->cx.arena, name == NULL && cuda ? described(&archs) : name,
                                 has_tiles(job), &job->machine, &from);
    if (code != 0)
        return code;
    job->costs = ls_arena_printf(job->cx.arena, "machine %s (%s)", job->machine.name, from);
    job->built_in = strncmp(from, "built in", 8) == 0;
    job->target.device = job->machine.name;
    job->target.dot_rate = ls_machine_dot_rate(&job->machine);
    if (!cuda || job->machine.gpu)
        return 0;
    fprintf(stderr,
            "lowerset: --machine: '%s' is not a GPU, but --target=cuda needs a GPU; lowerset "
            "targets lists "
            "some\n",
            job->machine.name);
    return LS_EXIT_USAGE;
}

/* Decides who chooses the engines of convolutions. */
static int choose_convs(LsJob *job)
{
    const LsOptions *o = job->options;
    int64_t most = 0;
    if (job->target.kind != LS_TARGET_CUDA)
        return 0;
    if (o->machine.workspace != NULL && !ls_size_parse(o->machine.workspace, &most)) {
        fprintf(stderr, "lowerset: --workspace: '%s' is not a size like 64MiB\n",
                o->machine.workspace);
        return LS_EXIT_USAGE;
    }
    const LsConvWishes w = {.device = job->target.device, .workspace = most,
                            .compiled = o->machine.compiled_engines,
                            .rules = {.tf32 = job->target.tf32,
                                      .nondeterministic = o->machine.nondeterministic}};
    job->target.convs = ls_conv_planner_new(job->cx.arena, &w);
    return 0;
}

int ls_job_start(LsJob *job, const LsOptions *o, bool weightless)
{
    *job = (LsJob){.options = o, .target = ls_target_cpu(4)};
    job->cx = (LsCtx){.arena = ls_arena_new(), .model = o->model, .quiet = o->output.quiet,
                      .max_error = o->output.max_errors > 0 ? (int)o->output.max_errors : 50};
    if (!choose_target(job))
        return LS_EXIT_USAGE;
    int code = ls_options_pipeline(&job->cx, o, &job->pipeline);
    job->pipeline.import.weightless = weightless;
    job->pipeline.import.located = true;
    if (code == 0)
        code = choose_machine(job);
    if (code == 0)
        code = choose_convs(job);
    if (code == 0)
        code = ls_options_tiling(o, &job->tiling);
    return code;
}

bool ls_job_start_like(LsJob *to, const LsJob *job, FILE *quiet)
{
    if (ls_job_start(to, job->options, job->pipeline.import.weightless) != 0)
        return false;
    to->cx.log = quiet;
    to->unproven = job->unproven;
    to->compare = job->compare;
    to->pipeline.dump = NULL;
    to->pipeline.head = job->pipeline.head;
    to->tiling = job->tiling;
    return true;
}

void ls_job_take(LsJob *job, LsJob *other)
{
    other->before = job->cx.arena;
    other->cx.log = job->cx.log;
    other->cx.nwarning += job->cx.nwarning;
    *job = *other;
}

void ls_job_end(LsJob *job)
{
    ls_conv_planner_free(job->target.convs);
    ls_arena_free(job->cx.arena);
    if (job->before != NULL)
        ls_arena_free(job->before);
    *job = (LsJob){0};
}
