/* tests/codegen/test_cuda_toolchain.c -- from device text to code for GPUs, and a program with it
 * as far as a machine without a GPU can run it. Tests that need NVRTC or the toolkit are skipped
 * without it. */
#include "codegen/toolchain/cuda_probe.h"
#include "codegen/toolchain/cuda_toolchain.h"
#include "codegen/toolchain/host_toolchain.h"
#include "codegen/toolchain/nvrtc.h"
#include "runtime/cuda/cuda_image.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static LsCtx cx;
static char *told; static size_t ntold;
static char folder[32];

static void start(void)
{
    strcpy(folder, "/tmp/lowerset-cuda-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    cx = (LsCtx){.arena = ls_arena_new(), .max_error = 10, .model = "tiny.onnx"};
    cx.log = open_memstream(&told, &ntold);
}

static void end(void)
{
    char command[128];
    fclose(cx.log);
    free(told);
    ls_arena_free(cx.arena);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    ck_assert_int_eq(system(command), 0);
}

static const char *log_text(void)
{
    fflush(cx.log);
    return told != NULL ? told : "";
}

static const char *path_of(const char *name)
{
    return ls_arena_printf(cx.arena, "%s/%s", folder, name);
}

static void write_text(const char *name, const char *text)
{
    FILE *f = fopen(path_of(name), "w");
    ck_assert_ptr_nonnull(f);
    fputs(text, f);
    fclose(f);
}

static char *read_file(const char *name)
{
    FILE *f = fopen(path_of(name), "rb");
    ck_assert_msg(f != NULL, "%s is missing", name);
    char *text = ls_arena_alloc(cx.arena, 1 << 20, 1);
    text[fread(text, 1, (1 << 20) - 1, f)] = '\0';
    ck_assert(!ferror(f));
    fclose(f);
    return text;
}

static bool have_nvrtc(void)
{
    LsNvrtc n;
    char why[256];
    bool have = ls_nvrtc_open(&n, why, sizeof why);
    if (have)
        ls_nvrtc_close(&n);
    else
        printf("skipped: %s\n", why);
    return have;
}

/* A device text of the test's own, so that the test depends on the compilers only. */
#define HEAD                                                                                       \
    "struct LsRun { void *pool, *device; unsigned long long seed; long long step, valid; };\n"     \
    "template <int n> struct LsArg { void *at[n]; };\n"                                            \
    "#define LS_PART(name, narg, x, y) extern \"C\" __global__ void __launch_bounds__(x * y) "     \
    "name(const LsRun *run, LsArg<narg> arg)\n"
static const char good[] = HEAD
    "LS_PART(k0_twice_part, 2, 128, 1)\n"
    "{\n"
    "    const float *x = (const float *)arg.at[0];\n"
    "    float *y = (float *)arg.at[1];\n"
    "    const long long i = blockIdx.x * 128ll + threadIdx.x;\n"
    "    if (i < run->valid)\n"
    "        y[i] = 2.f * x[i] + 1.f;\n"
    "}\n";

static LsCudaTool tool_for(const char *archs)
{
    LsCudaTool t = {0};
    ck_assert_msg(ls_cuda_archs(&cx, archs, &t.archs), "%s", log_text());
    return t;
}

START_TEST(architectures_are_sorted_and_ptx_serves_all_later_ones)
{
    start();
    LsCudaTool t = tool_for("90a,sm_80,86");
    ck_assert_str_eq(t.archs.text, "sm_80, sm_86, sm_90a, PTX compute_80");
    t = tool_for("75,90");
    ck_assert_str_eq(t.archs.text, "sm_75, sm_90, PTX compute_75");
    LsCudaArchs wrong;
    ck_assert(!ls_cuda_archs(&cx, "fast", &wrong));
    ck_assert_ptr_nonnull(strstr(log_text(), "--arch: 'fast'"));
    ck_assert(!ls_cuda_archs(&cx, "60", &wrong));
    end();
}
END_TEST

static void put(unsigned char *at, uint32_t kind, uint32_t arch, uint64_t offset)
{
    LsImageEntry t = {kind, arch, offset, 64};
    memcpy(at, &t, sizeof t);
}

START_TEST(a_device_gets_the_best_code_of_a_table)
{
    unsigned char image[512] = LS_IMAGE_MAGIC;
    image[8] = 4;
    put(image + 16, LS_IMAGE_CODE, 80, 128);
    put(image + 40, LS_IMAGE_CODE, 86, 192);
    put(image + 64, LS_IMAGE_EXACT, 90, 256);
    put(image + 88, LS_IMAGE_PTX, 80, 320);
    ck_assert_ptr_eq(ls_cuda_image_choose(image, 8, 0), image + 128);
    ck_assert_ptr_eq(ls_cuda_image_choose(image, 8, 9), image + 192);
    ck_assert_ptr_eq(ls_cuda_image_choose(image, 9, 0), image + 256);
    ck_assert_ptr_eq(ls_cuda_image_choose(image, 10, 0), image + 320);
    ck_assert_ptr_null(ls_cuda_image_choose(image, 7, 5));
    image[0] = 0x50;            /* the driver handles other formats */
    ck_assert_ptr_eq(ls_cuda_image_choose(image, 7, 5), image);
}
END_TEST

START_TEST(device_text_becomes_a_fatbin)
{
    start();
    if (have_nvrtc()) {
        LsCudaTool t = tool_for("80,90a");
        write_text("net.cu", good);
        ck_assert_msg(ls_cuda_build(&cx, &t, folder, "net", LS_SOURCE), "%s",
                      log_text());
        const unsigned char *made = (const unsigned char *)read_file("net.fatbin");
        bool table = memcmp(made, LS_IMAGE_MAGIC, 8) == 0;
        ck_assert(table || memcmp(made, "\x50\xed\x55\xba", 4) == 0);  /* fatBinaryHeader's magic */
        ck_assert(access(path_of("net.sm_80"), F_OK) != 0);
    }
    end();
}
END_TEST

START_TEST(without_fatbinary_the_pieces_become_a_table)
{
    start();
    if (have_nvrtc() && access("/usr/local/cuda/include", F_OK) != 0) {
        printf("skipped: the toolkit is at an unusual place\n");
    } else if (have_nvrtc()) {
        LsCudaTool t = tool_for("80,90a");
        char *path = strdup(getenv("PATH"));
        mkdir(path_of("include"), 0777);
        setenv("CUDA_HOME", folder, 1);         /* a toolkit without programs */
        setenv("PATH", folder, 1);
        write_text("net.cu", good);
        bool ok = ls_cuda_build(&cx, &t, folder, "net", LS_SOURCE);
        setenv("PATH", path, 1);
        unsetenv("CUDA_HOME");
        free(path);
        ck_assert_msg(ok, "%s", log_text());
        const unsigned char *made = (const unsigned char *)read_file("net.fatbin");
        const char *code = ls_cuda_image_choose(made, 9, 0),
                   *ptx = ls_cuda_image_choose(made, 12, 0);
        ck_assert(memcmp(made, LS_IMAGE_MAGIC, 8) == 0);
        ck_assert(memcmp(code, "\177ELF", 4) == 0);
        ck_assert_ptr_nonnull(strstr(ptx, ".target sm_80"));
        ck_assert_ptr_nonnull(strstr(ptx, "k0_twice_part"));
        ck_assert_ptr_null(strstr(ptx, "fma.rn.f32"));  /* no multiply and add are contracted */
    }
    end();
}
END_TEST

static const char wrong[] = HEAD
    "LS_PART(k0_good_part, 1, 32, 1)\n{\n}\n"
    "LS_PART(k1_bad_part, 1, 32, 1)\n{\n    float y = undefined_thing;\n}\n";

START_TEST(an_error_of_the_compiler_names_the_kernel)
{
    start();
    LsCudaTool t = tool_for("90a");
    write_text("net.cu", wrong);
    if (have_nvrtc()) {
        ck_assert(!ls_cuda_build(&cx, &t, folder, "net", LS_SOURCE));
        ck_assert_msg(strstr(log_text(), "kernel k1_bad_part: net.cu(") != NULL, "%s", log_text());
        ck_assert_ptr_nonnull(strstr(log_text(), "undefined_thing"));
        ck_assert_ptr_nonnull(strstr(log_text(), "NVRTC"));
        ck_assert_int_eq(cx.exit_code, 5);
    }
    end();
}
END_TEST

START_TEST(nvcc_does_where_nvrtc_is_not_wanted)
{
    start();
    const char *home = ls_cuda_home(cx.arena);
    const char *nvcc = home != NULL ? ls_arena_printf(cx.arena, "%s/bin/nvcc", home) : "";
    if (access(nvcc, X_OK) == 0) {
        LsCudaTool t = tool_for("90a");
        t.nvcc = nvcc;
        write_text("net.cu", wrong);
        ck_assert(!ls_cuda_build(&cx, &t, folder, "net", LS_SOURCE));
        ck_assert_msg(strstr(log_text(), "kernel k1_bad_part: ") != NULL, "%s", log_text());
    } else {
        printf("skipped: no nvcc\n");
    }
    end();
}
END_TEST

START_TEST(a_missing_compiler_is_named)
{
    start();
    LsCudaTool t = tool_for("90a");
    t.nvcc = "/nowhere/nvcc";
    write_text("net.cu", good);
    ck_assert(!ls_cuda_build(&cx, &t, folder, "net", LS_SOURCE));
    ck_assert_msg(strstr(log_text(), "/nowhere/nvcc") != NULL, "%s", log_text());
    ck_assert_int_eq(cx.exit_code, 5);
    end();
}
END_TEST

/* ---- a whole program ---- */

static const char host[] =
    "#include \"runtime/cuda/ls_cuda_run.h\"\n"
    "static void k0_twice(LsRun *run, void *const arg[]) { ls_cuda_launch(run, 0, 1, arg); }\n"
    "static const LsAddress address[] = {{LS_AT_INPUT, 0}, {LS_AT_ARENA, 0}};\n"
    "static const int64_t count[] = {8};\n"
    "static const uint8_t type[] = {LS_DT_REAL};\n"
    "static const LsStep step[] = {{k0_twice, \"twice\", \"Mul\", 2, 1, 1, 0, 0, false, 0, 0}};\n"
    "static const LsInput input[] = {{{\"x\", LS_DT_REAL, false, 1, {8}, {LS_AT_INPUT, 0}}, false, "
    "0, 0}};\n"
    "extern const unsigned char ls_cuda_fatbin[], ls_onnx_data[];\n"
    "static const LsCudaPart part[] = {{\"k0_twice_part\", 2, 128, 1}};\n"
    "static const LsCudaProgram cuda = {.fatbin = ls_cuda_fatbin, .archs = \"sm_90a\", .part = "
    "part, .npart = 1};\n"
    "const LsProgram ls_program = {\n"
    "    .about = {.model = \"twice.onnx\", .plan_hash = \"0\", .strategy = \"none\",\n"
    "              .loss = \"graph\", .optimizer = \"none\"},\n"
    "    .real_bytes = 4, .division = {8, 0, 1}, .bytes.arena = 32, .input = input, .ninput = 1,\n"
    "    .argument = {address, count, type}, .constant = ls_onnx_data,\n"
    "    .phase.train = {.step = step, .nstep = 1, .loss = {LS_AT_ARENA, 0}},\n"
    "    .file = {ls_onnx_data, 1}, .defaults.lr = 0.1,\n"
    "    .accelerator = {&ls_cuda_device, &cuda, NULL}};\n"
    "int main(int argc, char **argv) { return ls_trainer_main(&ls_program, argc, argv); }\n";

/* Makes the build folder look like an installation. */
static void make_home(void)
{
    mkdir(path_of("lib"), 0777);
    ck_assert_int_eq(symlink(LS_BUILD "/runtime", path_of("lib/lowerset")), 0);
    setenv("LOWERSET_HOME", folder, 1);
}

START_TEST(a_program_links_and_says_what_is_missing)
{
    LsCudaFound found;
    start();
    ls_cuda_probe(&found, false);
    if (access(LS_BUILD "/runtime/libls_runtime_cuda.a", R_OK) != 0) {
        printf("skipped: built without the CUDA toolkit\n");
    } else if (have_nvrtc()) {
        LsCudaTool cuda = tool_for("90a");
        LsToolchain t = {.cuda = &cuda, .opt = "1"};
        make_home();
        write_text("net.c", host);
        write_text("net.cu", good);
        write_text("net_data.S",
                   ls_arena_printf(
                       cx.arena,
                       "    .section .rodata\n    .global "
                       "ls_cuda_fatbin, ls_onnx_data\n    .balign 64\nls_cuda_fatbin:\n    .incbin "
                       "\"%s\"\nls_onnx_data:\n    .byte 0\n    .section "
                       ".note.GNU-stack,\"\",%%progbits\n",
                       path_of("net.fatbin")));
        ck_assert_msg(ls_toolchain_build(&cx, &t, folder, "net", LS_EMIT_EXE, path_of("net")), "%s",
                      log_text());
        int status = system(ls_arena_printf(cx.arena, "%s --data synthetic --steps 2 2>%s",
                                            path_of("net"), path_of("err")));
        const char *said = read_file("err");
        ck_assert(WIFEXITED(status));
        if (found.ndevice > 0) {
            ck_assert_msg(WEXITSTATUS(status) == 0, "%s", said);
        } else {
            ck_assert_msg(WEXITSTATUS(status) == 5, "exit %d: %s", WEXITSTATUS(status), said);
            ck_assert_msg(strstr(said, found.driver == 0 ? "no NVIDIA driver" : "GPU") != NULL,
                          "%s", said);
            ck_assert_ptr_eq(strchr(said, '\n'), said + strlen(said) - 1);      /* one sentence */
        }
    }
    end();
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("cuda_toolchain");
    const TTest *const tests[] = {architectures_are_sorted_and_ptx_serves_all_later_ones,
                                  a_device_gets_the_best_code_of_a_table,
                                  device_text_becomes_a_fatbin,
                                  without_fatbinary_the_pieces_become_a_table,
                                  an_error_of_the_compiler_names_the_kernel,
                                  nvcc_does_where_nvrtc_is_not_wanted,
                                  a_missing_compiler_is_named,
                                  a_program_links_and_says_what_is_missing};
    tcase_set_timeout(tc, 60);
    add_tests(tc, sizeof tests / sizeof *tests, tests);
    return run_tests("cuda_toolchain", tc);
}
