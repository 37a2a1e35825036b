/* codegen/toolchain/host_toolchain.h -- the C compiler, and the parts of the runtime that it
 * compiles. */
#ifndef LS_CODEGEN_TOOLCHAIN_HOST_TOOLCHAIN_H
#define LS_CODEGEN_TOOLCHAIN_HOST_TOOLCHAIN_H

#include "build_config.h"
#include "codegen/toolchain/run_command.h"
#include "compiler/ir/diag.h"

typedef enum { LS_EMIT_EXE, LS_EMIT_OBJ, LS_EMIT_C, LS_EMIT_LIB } LsEmitKind;

/* What a linked program for GPUs needs besides static libraries. */
#define LS_CUDA_LIBS "-Wl,-rpath," LS_CUDA_HOME "/lib64 -ldl -lrt"

typedef struct LsToolchain {
    const char *cc;             /* NULL: $CC, then cc */
    const char *march, *opt;    /* NULL: native, 3 */
    bool verbose, dry_run;      /* print the commands; do not run them */
    const struct LsCudaTool *cuda;      /* the program is one for NVIDIA GPUs; else NULL */
    bool mpi;                   /* the program is linked with MPI */
} LsToolchain;

/* Whether the C compiler and the runtime library are found, and the compiler is not too old. False
 * after a diagnostic. */
bool ls_toolchain_find(LsCtx *cx, const LsToolchain *t);

/* Builds `output`, an executable or one relocatable object, from DIR/BASE.c and DIR/BASE_data.S;
 * for a library that object has DIR/BASE_library.c and what it needs of the runtime, too.
 * For GPUs first compiles DIR/BASE.cu to DIR/BASE.fatbin, which the data embed. False after a
 * diagnostic: LS_E_TOOL if a compiler or the runtime library is missing or fails. */
bool ls_toolchain_build(LsCtx *cx, const LsToolchain *t, const char *dir, const char *base,
                        LsEmitKind kind, const char *output);

/* Makes of OBJECT, built so for a library, a static library and a shared one, both with the symbols
 * that begin with PREFIX_ alone (library_build.c). */
bool ls_library_build(LsCtx *cx, const LsToolchain *t, const char *object, const char *prefix,
                      const char *archive, const char *shared);
/* Runs a command of the tool chain. False after a diagnostic. */
bool ls_toolchain_run(LsCtx *cx, const LsCommand *c);
const char *ls_toolchain_compiler(const LsToolchain *t);

/* Copies the runtime's sources and headers to DIR (made if missing), for --emit=c. */
bool ls_toolchain_copy_runtime(LsCtx *cx, const LsToolchain *t, const char *dir);

/* The command, for people, that builds the files DIR/BASE.c and so on of --emit=c. Arena text. */
const char *ls_toolchain_hint(LsCtx *cx, const LsToolchain *t, const char *dir, const char *base,
                              const char *runtime_dir);

#endif
