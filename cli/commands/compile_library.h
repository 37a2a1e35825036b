/* cli/commands/compile_library.h -- compile --emit=lib: a header, a static and a shared library. */
#ifndef LS_CLI_COMMANDS_COMPILE_LIBRARY_H
#define LS_CLI_COMMANDS_COMPILE_LIBRARY_H

#include "cli/job/job.h"
#include "codegen/program/program_contents.h"
#include "codegen/toolchain/host_toolchain.h"

/* 0, or the exit code after a message: what libraries do not do yet, and a prefix that is none. */
int ls_library_check(const LsJob *job);
/* Writes DIR/BASE.h and DIR/BASE_library.c, after the program's C text. False after a message. */
bool ls_library_write(LsJob *job, const LsCode *code, const char *dir, const char *base);
/* Builds PATH.h, libPATH.a and libPATH.so, in the folder of `path`, from the files in DIR. False
 * after a message. */
bool ls_library_emit(LsJob *job, const LsToolchain *tool, const char *dir, const char *base,
                     const char *path);

#endif
