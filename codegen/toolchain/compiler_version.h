/* codegen/toolchain/compiler_version.h -- the C compilers that can build programs, by what they say
 * of themselves. */
#ifndef LS_CODEGEN_TOOLCHAIN_COMPILER_VERSION_H
#define LS_CODEGEN_TOOLCHAIN_COMPILER_VERSION_H

/* The oldest that can. Kernels call __builtin_shufflevector, which gcc has since 12. Clang has it
 * for long; older ones than this were not tried. */
enum { LS_GCC_LEAST = 12, LS_CLANG_LEAST = 13 };

typedef enum { LS_CC_UNKNOWN, LS_CC_GCC, LS_CC_CLANG } LsCompilerKind;
typedef struct LsCompiler { LsCompilerKind kind; int major, minor; } LsCompiler;

/* Reads what `cc --version` prints. Apple's clang, which counts otherwise, and other compilers are
 * LS_CC_UNKNOWN. */
LsCompiler ls_compiler_of(const char *text);
/* The oldest major version of that kind that can; 0 for LS_CC_UNKNOWN. */
int ls_compiler_least(LsCompilerKind kind);

#endif
