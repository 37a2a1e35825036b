/* codegen/toolchain/host_toolchain.h -- the C compiler, and the parts of the runtime it is given. */
#ifndef LS_CODEGEN_TOOLCHAIN_HOST_TOOLCHAIN_H
#define LS_CODEGEN_TOOLCHAIN_HOST_TOOLCHAIN_H

#include "compiler/ir/diag.h"

typedef enum { LS_EMIT_EXE, LS_EMIT_OBJ, LS_EMIT_C } LsEmitKind;

typedef struct LsToolchain {
    const char *cc;             /* NULL: $CC, then cc */
    const char *march, *opt;    /* NULL: native, 3 */
    bool verbose, dry_run;      /* print the commands; do not run them */
    const struct LsCudaTool *cuda;      /* the program is one for NVIDIA GPUs; else NULL */
} LsToolchain;

/* Whether the C compiler and the runtime library are there. False after a diagnostic. */
bool ls_toolchain_find(LsCtx *cx, const LsToolchain *t);

/* Turns DIR/BASE.c and DIR/BASE_data.S into `output`: an executable, or one relocatable object;
 * before that, for GPUs, DIR/BASE.cu into DIR/BASE.fatbin, which the data embed. False after a
 * diagnostic: LS_E_TOOL when a compiler or the runtime library is missing or fails. */
bool ls_toolchain_build(LsCtx *cx, const LsToolchain *t, const char *dir, const char *base,
                        LsEmitKind kind, const char *output);

/* Puts copies of the runtime's sources and headers into DIR (made if missing), for --emit=c. */
bool ls_toolchain_copy_runtime(LsCtx *cx, const LsToolchain *t, const char *dir);

/* The command that builds what --emit=c wrote as DIR/BASE.c and so on, for people: arena text. */
const char *ls_toolchain_hint(LsCtx *cx, const LsToolchain *t, const char *dir, const char *base,
                              const char *runtime_dir);

#endif
