/* codegen/toolchain/compiler_version.c -- see compiler_version.h. */
#include "codegen/toolchain/compiler_version.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* "12.2.0" or "12" at the beginning. */
static bool read_number(LsCompiler *c, const char *at)
{
    return sscanf(at, "%4d.%4d", &c->major, &c->minor) >= 1 && c->major > 0;
}

/* gcc: "cc (Debian 12.2.0-14+deb12u1) 12.2.0", "gcc (GCC) 4.8.5 20150623 (Red Hat 4.8.5-44)": the
 * number behind the first pair of brackets, in a text that names the Free Software Foundation, as
 * other compilers' do not. Clang: "Debian clang version 14.0.6", with the vendor's words before. */
LsCompiler ls_compiler_of(const char *text)
{
    static const char mark[] = "clang version ", owner[] = "Free Software Foundation";
    LsCompiler c = {0};
    const char *clang = strstr(text, mark), *close = strstr(text, ") ");
    if (clang != NULL && strncmp(text, "Apple", 5) != 0 && read_number(&c, clang + sizeof mark - 1))
        c.kind = LS_CC_CLANG;
    else if (clang == NULL && close != NULL && strstr(text, owner) != NULL
             && read_number(&c, close + 2))
        c.kind = LS_CC_GCC;
    return c;
}

int ls_compiler_least(LsCompilerKind kind)
{
    return kind == LS_CC_GCC ? LS_GCC_LEAST : kind == LS_CC_CLANG ? LS_CLANG_LEAST : 0;
}
