/* codegen/toolchain/nvrtc.c -- see nvrtc.h. The library's interface has been the same since CUDA
 * 11.1. */
#include "codegen/toolchain/nvrtc.h"
#include "runtime/cuda/library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CREATE, DESTROY, COMPILE, LOG_SIZE, LOG, CODE_SIZE, CODE, PTX_SIZE, PTX };
enum { MAX_OPTIONS = 24, OLDEST = 12 };

static const char *const name_of[] = {
    "nvrtcCreateProgram", "nvrtcDestroyProgram", "nvrtcCompileProgram", "nvrtcGetProgramLogSize",
    "nvrtcGetProgramLog", "nvrtcGetCUBINSize", "nvrtcGetCUBIN", "nvrtcGetPTXSize", "nvrtcGetPTX"};

typedef struct _nvrtcProgram *Program;
typedef int (*Create)(Program *, const char *source, const char *name, int nheader,
                      const char *const *header, const char *const *include);
typedef int (*Destroy)(Program *);
typedef int (*Compile)(Program, int noption, const char *const *option);
typedef int (*Size)(Program, size_t *);
typedef int (*Get)(Program, char *);
typedef int (*Version)(int *major, int *minor);

/* Converts a data pointer to a function pointer, the way POSIX uses dlsym's result. */
#define FUNCTION(type, pointer) (*(type *)&(void *){(void *)(pointer)})

static bool find_functions(LsNvrtc *n, char *why, size_t size)
{
    void *version = dlsym(n->so, "nvrtcVersion");
    if (version != NULL)
        FUNCTION(Version, version)(&n->major, &n->minor);
    if (n->major < OLDEST) {
        snprintf(why, size, "%s is version %d.%d, %d or newer is needed", n->file, n->major,
                 n->minor, OLDEST);
        return false;
    }
    for (size_t k = 0; k < sizeof name_of / sizeof *name_of; k++) {
        n->function[k] = dlsym(n->so, name_of[k]);
        if (n->function[k] == NULL) {
            snprintf(why, size, "%s has no %s", n->file, name_of[k]);
            return false;
        }
    }
    return true;
}

bool ls_nvrtc_open(LsNvrtc *n, char *why, size_t size)
{
    static const char *const soname[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so", NULL};
    char loader[256];
    *n = (LsNvrtc){0};
    n->so = ls_library_find(soname, n->file, sizeof n->file, loader, sizeof loader);
    if (n->so == NULL) {
        snprintf(why, size, "libnvrtc.so.13, libnvrtc.so.12 and libnvrtc.so are not found");
        return false;
    }
    if (find_functions(n, why, size))
        return true;
    ls_nvrtc_close(n);
    return false;
}

void ls_nvrtc_close(LsNvrtc *n)
{
    if (n->so != NULL)
        dlclose(n->so);
    *n = (LsNvrtc){0};
}

/* Writes one result to a file: gets its size, then its bytes. */
static bool save(const LsNvrtc *n, Program p, int size_at, int get_at, bool text, const char *path)
{
    size_t size = 0;
    if (FUNCTION(Size, n->function[size_at])(p, &size) != 0)
        return false;
    char *buf = malloc(size + 1);
    FILE *to = buf != NULL ? fopen(path, "wb") : NULL;
    bool ok = to != NULL && FUNCTION(Get, n->function[get_at])(p, buf) == 0;
    if (text && size > 0)
        size--;                 /* the zero at the end */
    ok = ok && fwrite(buf, 1, size, to) == size;
    if (to != NULL)
        ok &= fclose(to) == 0;
    free(buf);
    return ok;
}

bool ls_nvrtc_compile(const LsNvrtc *n, const char *source, const char *name, const char *arch,
                      const char *const *option, const char *output, const char *log)
{
    char target[64];
    const char *all[MAX_OPTIONS] = {target};
    int noption = 1;
    bool code = strncmp(arch, "sm_", 3) == 0;
    Program p = NULL;
    snprintf(target, sizeof target, "--gpu-architecture=%s", arch);
    for (; *option != NULL && noption < MAX_OPTIONS; option++)
        all[noption++] = *option;
    if (FUNCTION(Create, n->function[CREATE])(&p, source, name, 0, NULL, NULL) != 0)
        return false;
    bool ok = FUNCTION(Compile, n->function[COMPILE])(p, noption, all) == 0;
    save(n, p, LOG_SIZE, LOG, true, log);
    ok = ok && save(n, p, code ? CODE_SIZE : PTX_SIZE, code ? CODE : PTX, false, output);
    FUNCTION(Destroy, n->function[DESTROY])(&p);
    return ok;
}
