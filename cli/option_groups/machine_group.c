/* cli/option_groups/machine_group.c -- see the header. */
#include "cli/option_groups/machine_group.h"

#include "cli/option_groups/option_rows.h"

#define AT(field) offsetof(LsMachineGroup, field)
static const LsOption machine[] = {
    {"--target", NULL, "cpu|cuda", TEXT, AT(target), BUILD, "machine to build for (default cpu)"},
    {"--machine", NULL, "NAME|FILE", TEXT, AT(name), BUILD,
     "machine whose costs plans use: a name from lowerset targets, or the file that calibrate "
     "wrote"},
    {"--threads", NULL, "N", INTEGER(1, 4096), AT(threads), LS_CMD_COMPILE | LS_CMD_PLAN,
     "threads that the program will run with, for the times that are printed (default: all "
     "cores)"},
    {"--costs", NULL, "FILE", TEXT, AT(costs), BUILD,
     "measured times of the model's steps: the file that TRAINER --profile wrote"},
    {"--precision", NULL, "f32|f64|tf32|bf16|f16", TEXT, AT(precision), BUILD,
     "type of all real numbers (default f32); bf16, f16: activations and products in 16 bits, "
     "or params=T,compute=T,output=T; tf32: f32, but products round their factors (cuda)"},
    {"--eval-precision", NULL, "f32|bf16|f16", TEXT, AT(eval_precision),
     LS_CMD_COMPILE | LS_CMD_PLAN,
     "type that evaluation computes in: --val, --eval (default: as training)"},
    {"--precision-of", NULL, "GLOB=f32", LIST, AT(wide), BUILD,
     "nodes or values that stay f32 although --precision computes in 16 bits; may be repeated"},
    {"--bf16-sums", NULL, "auto|pairs|tiles", TEXT, AT(bf16_sums), PRODUCT,
     "order in which products of bf16 add up: pairs, as VDPBF16PS does, or tiles, as AMX does; "
     "the same bits on every processor (default auto: tiles where the C compiler's target has "
     "AMX)"},
    {"-march", NULL, "NAME", TEXT, AT(march), PRODUCT,
     "instruction set for the C compiler (default native)"},
    {"--opt", "-O", "LEVEL", TEXT, AT(opt), PRODUCT,
     "optimization level for the C compiler (default 3)"},
    {"--cc", NULL, "PROGRAM", TEXT, AT(cc), PRODUCT, "C compiler (default $CC, then cc)"},
    {"--arch", NULL, "90a,80,...", TEXT, AT(arch), BUILD | GPU,
     "NVIDIA GPUs to build for (default: this machine's, else 90a); later GPUs use the PTX"},
    {"--nvcc", NULL, "PROGRAM", TEXT, AT(nvcc), PRODUCT | GPU,
     "device compiler to use instead of NVRTC (default $NVCC)"},
    {"--workspace", NULL, "SIZE", TEXT, AT(workspace), BUILD | GPU,
     "limit on the scratch memory of one convolution (cuda; default: what its engine asks for)"},
    {"--allow-nondeterministic", NULL, NULL, FLAG, AT(nondeterministic), BUILD | GPU,
     "allow convolutions that may add in another order each time (cuda)"},
    {"--compiled-engines", NULL, NULL, FLAG, AT(compiled_engines), BUILD | GPU,
     "also fuse ReLU gradients into convolutions, by kernels that cuDNN compiles at the start "
     "(cuda)"},
    {"--no-overlap", NULL, NULL, FLAG, AT(no_overlap),
     LS_CMD_COMPILE | LS_CMD_PLAN | LS_CMD_CHECK | GPU,
     "run steps one after the other. Else those that do not depend on each other run at the "
     "same time, if the program's first steps show that this is faster (cuda)"},
};
const LsOptionGroup ls_machine_group = GROUP("Machine", machine);
