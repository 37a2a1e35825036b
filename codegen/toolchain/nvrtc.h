/* codegen/toolchain/nvrtc.h -- NVIDIA's runtime compiler, opened when needed: neither libnvrtc nor
 * its headers are part of this program. */
#ifndef LS_CODEGEN_TOOLCHAIN_NVRTC_H
#define LS_CODEGEN_TOOLCHAIN_NVRTC_H

#include <stdbool.h>
#include <stddef.h>

typedef struct LsNvrtc {
    void *so;
    char file[1024];            /* as opened, "libnvrtc.so.13" */
    int major, minor;
    void *function[9];          /* see nvrtc.c */
} LsNvrtc;

/* Opens the newest version found. False with a sentence in why: the files tried, or the version
 * found and the version needed. */
bool ls_nvrtc_open(LsNvrtc *n, char *why, size_t size);
void ls_nvrtc_close(LsNvrtc *n);

/* Compiles the text `source` (`name` in messages) to the file `output`: machine code if arch begins
 * with "sm_", PTX if it begins with "compute_". option: further options, NULL at the end. The
 * compiler's messages go to the file `log`. */
bool ls_nvrtc_compile(const LsNvrtc *n, const char *source, const char *name, const char *arch,
                      const char *const *option, const char *output, const char *log);

#endif
