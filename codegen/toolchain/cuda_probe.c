/* codegen/toolchain/cuda_probe.c -- see cuda_probe.h. */
#include "codegen/toolchain/cuda_probe.h"

#include "build_config.h"
#include "codegen/toolchain/nvrtc.h"
#include "codegen/toolchain/run_command.h"
#include "runtime/cuda/library.h"

#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAJOR = 75, MINOR = 76 };        /* CUdevice_attribute: compute capability */

/* A function of an opened library, with its type; NULL: not found. */
#define FUNCTION(type, so, name) (*(__typeof__(type) *)&(void *){dlsym(so, name)})

static void look_for_devices(LsCudaFound *f)
{
    void *so = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (so == NULL)
        return;
    int (*init)(unsigned) = FUNCTION(int (*)(unsigned), so, "cuInit");
    int (*version)(int *) = FUNCTION(int (*)(int *), so, "cuDriverGetVersion");
    int (*count)(int *) = FUNCTION(int (*)(int *), so, "cuDeviceGetCount");
    int (*name)(char *, int, int) = FUNCTION(int (*)(char *, int, int), so, "cuDeviceGetName");
    int (*attribute)(int *, int, int) =
        FUNCTION(int (*)(int *, int, int), so, "cuDeviceGetAttribute");
    int (*memory)(size_t *, int) = FUNCTION(int (*)(size_t *, int), so, "cuDeviceTotalMem_v2");
    if (!init || !version || !count || !name || !attribute || !memory || version(&f->driver) != 0
        || init(0) != 0 || count(&f->ndevice) != 0)
        return;
    f->ndevice = f->ndevice < LS_CUDA_DEVICES ? f->ndevice : LS_CUDA_DEVICES;
    for (int k = 0; k < f->ndevice; k++) {      /* a device's handle is its ordinal */
        size_t bytes = 0;
        name(f->device[k].name, (int)sizeof f->device[k].name, k);
        attribute(&f->device[k].major, MAJOR, k);
        attribute(&f->device[k].minor, MINOR, k);
        memory(&bytes, k);
        f->device[k].bytes = (int64_t)bytes;
    }
}

static int library_version(const char *const *file, const char *function)
{
    char found[1024], why[256];
    void *so = ls_library_find(file, found, sizeof found, why, sizeof why);
    size_t (*version)(void) = so != NULL ? FUNCTION(size_t (*)(void), so, function) : NULL;
    return version != NULL ? (int)version() : 0;
}

static void look_for_libraries(LsCudaFound *f)
{
    static const char *const cudnn[] = {"libcudnn.so.9", NULL};
    static const char *const cublaslt[] = {"libcublasLt.so.13", "libcublasLt.so.12", NULL};
    LsNvrtc n;
    char why[256];
    if (ls_nvrtc_open(&n, why, sizeof why))
        f->nvrtc = 10 * n.major + n.minor;
    f->cudnn = library_version(cudnn, "cudnnGetVersion");
    f->cublaslt = library_version(cublaslt, "cublasLtGetVersion");
}

static bool tell(int to, const LsCudaFound *f)
{
    return write(to, f, sizeof *f) == (ssize_t)sizeof *f;
}

void ls_cuda_probe(LsCudaFound *f, bool libraries)
{
    int end[2], status;
    LsCudaFound now;
    *f = (LsCudaFound){0};
    if (pipe(end) != 0)
        return;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        if (libraries)
            look_for_libraries(f);
        bool told = tell(end[1], f);
        look_for_devices(f);
        _exit(told && tell(end[1], f) ? 0 : 1);
    }
    close(end[1]);
    while (child > 0 && read(end[0], &now, sizeof now) == (ssize_t)sizeof now)
        *f = now;
    close(end[0]);
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
}

/* Compute capability 9.0 and later have instructions that only "a" code may use. */
static const char *arch_text(LsArena *a, int major, int minor)
{
    return ls_arena_printf(a, "%d%d%s", major, minor, major >= 9 ? "a" : "");
}

const char *ls_cuda_device_arch(LsArena *a)
{
    LsCudaFound f;
    ls_cuda_probe(&f, false);
    return f.ndevice > 0 ? arch_text(a, f.device[0].major, f.device[0].minor) : NULL;
}

const char *ls_cuda_home(LsArena *a)
{
    const char *place[] = {getenv("CUDA_HOME"), getenv("CUDA_PATH"), LS_CUDA_HOME,
                           "/usr/local/cuda"};
    for (size_t k = 0; k < sizeof place / sizeof *place; k++)
        if (place[k] != NULL && place[k][0] != '\0'
            && access(ls_arena_printf(a, "%s/include", place[k]), R_OK) == 0)
            return place[k];
    return NULL;
}

static void report_library(FILE *to, const char *what, const char *name, int version, int base)
{
    if (version == 0)
        fprintf(to, "  %-10s not found (%s)\n", what, name);
    else if (base == 0)
        fprintf(to, "  %-10s %d.%d\n", what, version / 10, version % 10);
    else
        fprintf(to, "  %-10s %d.%d.%d\n", what, version / base, version / 100 % (base / 100),
                version % 100);
}

void ls_cuda_report(LsArena *a, FILE *to)
{
    LsCudaFound f;
    ls_cuda_probe(&f, true);
    const char *home = ls_cuda_home(a), *nvcc = home ? ls_arena_printf(a, "%s/bin/nvcc", home) : "";
    nvcc = access(nvcc, X_OK) == 0 ? nvcc : ls_command_find(a, "nvcc");
    fprintf(to, "cuda   NVIDIA GPUs: %s\n",
            LS_CUDA_HOME[0] == '\0'
                ? "this lowerset was built without the CUDA toolkit's headers; it "
                  "prints programs (--emit=c) and builds none"
            : f.nvrtc == 0 && nvcc == NULL ? "no compiler for device code is found"
                                           : "programs are built here");
    fprintf(to, "  %-10s %s\n", "toolkit", home != NULL ? home : "not found (CUDA_HOME)");
    report_library(to, "NVRTC", "libnvrtc.so.13, .12", f.nvrtc, 0);
    fprintf(to, "  %-10s %s\n", "nvcc", nvcc != NULL ? nvcc : "not found");
    report_library(to, "cuDNN", "libcudnn.so.9", f.cudnn, 10000);
    report_library(to, "cuBLASLt", "libcublasLt.so.13, .12", f.cublaslt, 10000);
    if (f.driver == 0)
        fprintf(to, "  %-10s none (libcuda.so.1): programs can be built here, not run\n", "driver");
    else
        fprintf(to, "  %-10s for CUDA %d.%d\n", "driver", f.driver / 1000, f.driver % 1000 / 10);
    for (int k = 0; k < f.ndevice; k++)
        fprintf(to, "  %-10s %d: %s, %.1f GiB, --arch=%s\n", "device", k, f.device[k].name,
                (double)f.device[k].bytes / 1073741824,
                arch_text(a, f.device[k].major, f.device[k].minor));
    if (f.driver > 0 && f.ndevice == 0)
        fprintf(to, "  %-10s none\n", "device");
    fprintf(to, "  %-10s 75 80 86 89 90a 100a 120a, and plain 90 100 120; default: of the device, "
                "else 90a\n", "--arch");
}
