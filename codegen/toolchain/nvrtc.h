/* codegen/toolchain/nvrtc.h -- NVIDIA's runtime compiler, opened when it is needed: libnvrtc is no part of
 * this program, and neither are its headers. */
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
 * found and the one that is needed. */
bool ls_nvrtc_open(LsNvrtc *n, char *why, size_t size);
void ls_nvrtc_close(LsNvrtc *n);

/* Compiles `source` (a text, for messages called `name`) to the file `output`: machine code when
 * arch begins with "sm_", PTX when with "compute_". option: further ones, NULL at the end. What the
 * compiler has to say goes to the file `log`. */
bool ls_nvrtc_compile(const LsNvrtc *n, const char *source, const char *name, const char *arch,
                      const char *const *option, const char *output, const char *log);

#endif
