/* codegen/toolchain/cuda_toolchain.c -- see cuda_toolchain.h.
 *
 * NVRTC compiles for one architecture at a time. Each compilation has its own process: processes
 * run in parallel, and a compiler that crashes stops no other. The toolkit's fatbinary joins the
 * results to one file, or, if it is missing, a table of our own format does
 * (runtime/cuda/cuda_image.h). */
#include "codegen/toolchain/cuda_toolchain.h"

#include "base/read_file.h"
#include "codegen/toolchain/cuda_probe.h"
#include "codegen/toolchain/nvrtc.h"
#include "codegen/toolchain/run_command.h"
#include "runtime/cuda/cuda_image.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LOG_LINES = 12 };        /* most lines of a compiler's messages that are shown */

typedef struct Build {          /* one program */
    LsCtx *cx;
    const LsCudaTool *t;
    const char *dir, *base, *include;
    const char *source;         /* the device text */
} Build;

/* ---- architectures ---- */

static int by_number(const void *a, const void *b)
{
    const LsCudaArch *x = a, *y = b;
    return x->number != y->number ? x->number - y->number : x->exact - y->exact;
}

static const char *archs_text(LsArena *a, const LsCudaArchs *archs)
{
    const char *text = "";
    for (int k = 0; k < archs->n; k++)
        text = ls_arena_printf(a, "%ssm_%d%s, ", text, archs->arch[k].number,
                               archs->arch[k].exact ? "a" : "");
    return ls_arena_printf(a, "%sPTX compute_%d", text, archs->ptx);
}

static bool parse_arch(const char *word, LsCudaArch *arch)
{
    char *end;
    word += strncmp(word, "sm_", 3) == 0 ? 3 : 0;
    arch->number = (int)strtol(word, &end, 10);
    arch->exact = *end == 'a';
    end += arch->exact;
    return *end == '\0' && arch->number >= LS_CUDA_OLDEST_ARCH && arch->number < 1000;
}

bool ls_cuda_archs(LsCtx *cx, const char *option, LsCudaArchs *archs)
{
    char *save = NULL, *list;
    *archs = (LsCudaArchs){0};
    if (option == NULL)
        option = ls_cuda_device_arch(cx->arena);
    list = ls_arena_strdup(cx->arena, option != NULL ? option : "90a");
    for (char *w = strtok_r(list, ",", &save); w != NULL; w = strtok_r(NULL, ",", &save)) {
        if (archs->n == LS_CUDA_ARCHS || !parse_arch(w, &archs->arch[archs->n]))
            return ls_error(cx, LS_NOWHERE, LS_E_OPTION, NULL,
                            "--arch: '%s' is not one of 75, 80, 86, 89, 90a, 100, ..., or there "
                            "are more than %d",
                            w, LS_CUDA_ARCHS);
        archs->n++;
    }
    if (archs->n == 0)
        return ls_error(cx, LS_NOWHERE, LS_E_OPTION, NULL, "--arch: no architecture is named");
    qsort(archs->arch, (size_t)archs->n, sizeof archs->arch[0], by_number);
    archs->ptx =
        archs->arch[0].number < LS_CUDA_PTX_ARCH ? archs->arch[0].number : LS_CUDA_PTX_ARCH;
    archs->text = archs_text(cx->arena, archs);
    return true;
}

/* ---- compilers' messages ---- */

/* The name of the kernel that contains line `line` of the text. */
static const char *kernel_at(const Build *b, long line)
{
    const char *name = NULL;
    for (const char *at = b->source; at != NULL && line-- > 0; at = strchr(at, '\n')) {
        at += *at == '\n';
        if (strncmp(at, "LS_PART(", 8) == 0)
            name = at + 8;
    }
    return name != NULL ? ls_arena_printf(b->cx->arena, "%.*s", (int)strcspn(name, ",) "), name)
                        : NULL;
}

/* Prints a compiler's messages, each error after the name of its kernel. */
static void tell(const Build *b, const char *log)
{
    char *text = ls_read_file_into(b->cx->arena, log, LS_ANY_SIZE, NULL), *save = NULL;
    const char *file = ls_arena_printf(b->cx->arena, "%s.cu(", b->base);
    FILE *to = b->cx->log != NULL ? b->cx->log : stderr;
    int shown = 0;
    for (char *l = text != NULL ? strtok_r(text, "\n", &save) : NULL; l != NULL;
         l = strtok_r(NULL, "\n", &save)) {
        const char *at = strstr(l, file);
        bool wrong = at != NULL && strstr(l, "error") != NULL;
        const char *kernel = wrong ? kernel_at(b, atol(at + strlen(file))) : NULL;
        if (shown++ >= LOG_LINES)
            break;
        fprintf(to, "  %s%s%s%s\n", kernel != NULL ? "kernel " : "",
                kernel != NULL ? kernel : "", kernel != NULL ? ": " : "", l);
    }
}

static bool failed(const Build *b, const char *compiler, const char *log)
{
    ls_error(b->cx, LS_NOWHERE, LS_E_TOOL,
             "run again with --save-temps=DIR -v to see the command and the device text",
             "%s cannot compile the device text", compiler);
    tell(b, log);
    return false;
}

/* ---- NVRTC ---- */

/* The target of output k: code for each architecture, then PTX. */
static const char *arch_word(const Build *b, int k)
{
    const LsCudaArchs *archs = &b->t->archs;
    return k < archs->n ? ls_arena_printf(b->cx->arena, "sm_%d%s", archs->arch[k].number,
                                          archs->arch[k].exact ? "a" : "")
                        : ls_arena_printf(b->cx->arena, "compute_%d", archs->ptx);
}

static const char *file_of(const Build *b, int k, const char *ending)
{
    return ls_arena_printf(b->cx->arena, "%s/%s.%s%s", b->dir, b->base, arch_word(b, k), ending);
}

/* Runs in a process of its own; returns 0, or 1 if the text does not compile. */
static int compile_one(const Build *b, const LsNvrtc *n, int k)
{
    const char *option[8] = {"--fmad=false", "--std=c++17",
                             ls_arena_printf(b->cx->arena, "-I%s", b->include)};
    int n_option = 3;
    if (n->major >= 13)         /* uses all idle cores */
        option[n_option++] = "--split-compile=0";
    if (b->t->lines)
        option[n_option++] = "--generate-line-info";
    return ls_nvrtc_compile(n, b->source, ls_arena_printf(b->cx->arena, "%s.cu", b->base),
                            arch_word(b, k), option, file_of(b, k, ""), file_of(b, k, ".log"))
               ? 0 : 1;
}

static bool compile_all(const Build *b, const LsNvrtc *n)
{
    int count = b->t->archs.n + 1, bad = -1;
    pid_t child[LS_CUDA_ARCHS + 1];
    for (int k = 0; k < count; k++) {
        child[k] = fork();
        if (child[k] == 0)
            _exit(compile_one(b, n, k));
    }
    for (int k = 0; k < count; k++) {
        int status = -1;
        while (child[k] > 0 && waitpid(child[k], &status, 0) < 0 && errno == EINTR)
            ;
        if (status != 0 && bad < 0)
            bad = k;
    }
    return bad < 0 || failed(b, ls_arena_printf(b->cx->arena, "NVRTC %d.%d (%s) for %s", n->major,
                                                n->minor, n->file, arch_word(b, bad)),
                             file_of(b, bad, ".log"));
}

/* ---- joining the results to one file ---- */

static const char *toolkit_program(const Build *b, const char *name)
{
    LsArena *a = b->cx->arena;
    const char *home = ls_cuda_home(a);
    const char *own = home != NULL ? ls_arena_printf(a, "%s/bin/%s", home, name) : NULL;
    return own != NULL && access(own, X_OK) == 0 ? own : ls_command_find(a, name);
}

static bool join_by_fatbinary(const Build *b, const char *program, const char *output)
{
    LsArena *a = b->cx->arena;
    LsCommand c = {.arena = a, .print = b->t->verbose};
    ls_command_add(&c, program);
    ls_command_add(&c, "-64");
    ls_command_add(&c, ls_arena_printf(a, "--create=%s", output));
    for (int k = 0; k <= b->t->archs.n; k++)
        ls_command_add(&c, ls_arena_printf(a, "--image3=kind=%s,sm=%s,file=%s",
                                           k < b->t->archs.n ? "elf" : "ptx",
                                           strchr(arch_word(b, k), '_') + 1, file_of(b, k, "")));
    return ls_command_run(&c) == 0
           || ls_error(b->cx, LS_NOWHERE, LS_E_TOOL, NULL, "'%s' failed", program);
}

static void put_zeros(FILE *to, uint64_t n)
{
    while (n-- > 0)
        fputc(0, to);
}

/* Each piece begins at a multiple of 64 and at least one zero byte follows it, as PTX needs. */
static bool join_by_table(const Build *b, const char *output)
{
    uint32_t n = (uint32_t)b->t->archs.n + 1;
    LsImageHead head = {.count = n};
    LsImageEntry t[LS_CUDA_ARCHS + 1] = {0};
    char *data[LS_CUDA_ARCHS + 1];
    uint64_t at = sizeof head + n * sizeof *t;
    memcpy(head.magic, LS_IMAGE_MAGIC, sizeof head.magic);
    for (uint32_t k = 0; k < n; k++) {
        bool ptx = k + 1 == n;
        const LsCudaArch *arch = &b->t->archs.arch[k];
        size_t size = 0;
        data[k] = ls_read_file_into(b->cx->arena, file_of(b, (int)k, ""), LS_ANY_SIZE, &size);
        at = (at + 64) / 64 * 64;
        t[k] = (LsImageEntry){ptx ? LS_IMAGE_PTX : arch->exact ? LS_IMAGE_EXACT : LS_IMAGE_CODE,
                              (uint32_t)(ptx ? b->t->archs.ptx : arch->number), at, (uint64_t)size};
        at += t[k].bytes;
        if (data[k] == NULL)
            return ls_error(b->cx, LS_NOWHERE, LS_E_IO, NULL, "cannot read '%s'",
                            file_of(b, (int)k, ""));
    }
    FILE *to = fopen(output, "wb");
    if (to == NULL)
        return ls_error(b->cx, LS_NOWHERE, LS_E_IO, NULL, "cannot write '%s': %s", output,
                        strerror(errno));
    fwrite(&head, sizeof head, 1, to);
    fwrite(t, sizeof *t, n, to);
    at = sizeof head + n * sizeof *t;
    for (uint32_t k = 0; k < n; k++) {
        put_zeros(to, t[k].offset - at);
        fwrite(data[k], 1, t[k].bytes, to);
        at = t[k].offset + t[k].bytes;
    }
    put_zeros(to, 1);
    bool ok = !ferror(to);
    ok &= fclose(to) == 0;
    return ok || ls_error(b->cx, LS_NOWHERE, LS_E_IO, NULL, "cannot write '%s'", output);
}

static bool build_by_nvrtc(const Build *b, const LsNvrtc *n, const char *output)
{
    const char *fatbinary = toolkit_program(b, "fatbinary");
    if (b->t->verbose || b->t->dry_run)
        fprintf(stderr, "NVRTC %d.%d (%s): %s/%s.cu -> %s for %s\n", n->major, n->minor, n->file,
                b->dir, b->base, output, b->t->archs.text);
    if (b->t->dry_run)
        return true;
    bool ok = compile_all(b, n)
              && (fatbinary != NULL ? join_by_fatbinary(b, fatbinary, output)
                                    : join_by_table(b, output));
    for (int k = 0; k <= b->t->archs.n; k++) {
        unlink(file_of(b, k, ""));
        unlink(file_of(b, k, ".log"));
    }
    return ok;
}

/* ---- nvcc ---- */

/* The nvcc that was asked for; NULL: none, so NVRTC is tried first. */
static const char *wanted_nvcc(const LsCudaTool *t)
{
    const char *env = getenv("NVCC");
    return t->nvcc != NULL ? t->nvcc : env != NULL && env[0] != '\0' ? env : NULL;
}

static bool build_by_nvcc(const Build *b, const char *nvcc, const char *output)
{
    LsArena *a = b->cx->arena;
    const LsCudaArchs *archs = &b->t->archs;
    LsCommand c = {.arena = a, .print = b->t->verbose, .dry = b->t->dry_run,
                   .errors = ls_arena_printf(a, "%s/%s.log", b->dir, b->base)};
    ls_command_add(&c, nvcc);
    ls_command_add_words(&c, "-fatbin -O3 -std=c++17 -fmad=false --threads=0");
    if (b->t->lines)
        ls_command_add(&c, "-lineinfo");
    for (int k = 0; k < archs->n; k++) {
        const char *arch = strchr(arch_word(b, k), '_') + 1;
        ls_command_add(&c, ls_arena_printf(a, "-gencode=arch=compute_%s,code=sm_%s", arch, arch));
    }
    ls_command_add(&c, ls_arena_printf(a, "-gencode=arch=compute_%d,code=compute_%d", archs->ptx,
                                       archs->ptx));
    ls_command_add(&c, ls_arena_printf(a, "-I%s", b->include));
    ls_command_add(&c, ls_arena_printf(a, "%s/%s.cu", b->dir, b->base));
    ls_command_add(&c, "-o");
    ls_command_add(&c, output);
    bool ok = ls_command_run(&c) == 0 || failed(b, nvcc, c.errors);
    unlink(c.errors);
    return ok;
}

bool ls_cuda_build(LsCtx *cx, const LsCudaTool *t, const char *dir, const char *base,
                   const char *include)
{
    Build b = {.cx = cx, .t = t, .dir = dir, .base = base, .include = include};
    const char *output = ls_arena_printf(cx->arena, "%s/%s.fatbin", dir, base);
    const char *want = wanted_nvcc(t);
    char why[256];
    LsNvrtc nvrtc = {0};
    b.source = t->dry_run
                   ? ""
                   : ls_read_file_into(cx->arena, ls_arena_printf(cx->arena, "%s/%s.cu", dir, base),
                                       LS_ANY_SIZE, NULL);
    if (b.source == NULL)
        return ls_error(cx, LS_NOWHERE, LS_E_IO, NULL, "cannot read '%s/%s.cu'", dir, base);
    if (want == NULL && ls_nvrtc_open(&nvrtc, why, sizeof why)) {
        bool ok = build_by_nvrtc(&b, &nvrtc, output);
        ls_nvrtc_close(&nvrtc);
        return ok;
    }
    const char *nvcc =
        want != NULL ? ls_command_find(cx->arena, want) : toolkit_program(&b, "nvcc");
    if (nvcc != NULL)
        return build_by_nvcc(&b, nvcc, output);
    if (want != NULL)
        return ls_error(cx, LS_NOWHERE, LS_E_TOOL, NULL, "cannot find the program '%s' (nvcc)",
                        want);
    return ls_error(
        cx, LS_NOWHERE, LS_E_TOOL,
        "install the CUDA toolkit, or put the folder of libnvrtc into LD_LIBRARY_PATH",
        "there is no compiler for device code: %s; nvcc is neither in the toolkit's folder "
        "nor in PATH",
        why);
}
