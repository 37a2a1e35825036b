/* cli/job/machine_choice.c -- see machine_choice.h. */
#include "cli/job/machine_choice.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined __x86_64__ && defined __linux__
#include <cpuid.h>
#include <sys/syscall.h>
#endif

const char *ls_machine_path(LsArena *a)
{
    const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    if (config != NULL && config[0] == '/')
        return ls_arena_printf(a, "%s/lowerset/machine", config);
    return home != NULL && home[0] != '\0' ? ls_arena_printf(a, "%s/.config/lowerset/machine", home)
                                           : NULL;
}

static int load(LsArena *a, const char *path, LsMachine *m, const char **from)
{
    char err[512];
    *from = ls_arena_printf(a, "%s", path);
    if (ls_machine_load(m, path, err, sizeof err))
        return 0;
    fprintf(stderr, "lowerset: %s\n", err);
    return LS_EXIT_USAGE;
}

static void print_names(FILE *to)
{
    LsMachine m;
    char err[256];
    for (size_t k = 0; ls_machine_builtin(k) != NULL; k++)
        if (ls_machine_parse(&m, ls_machine_builtin(k), "", err, sizeof err))
            fprintf(to, " %s", m.name);
}

bool ls_machine_has_tiles(void)
{
#if defined __x86_64__ && defined __linux__
    enum { BF16 = 22, TILE = 24, GET_XCOMP_SUPP = 0x1021, XTILEDATA = 18 };
    unsigned a, b, c, d;
    uint64_t states = 0;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d >> BF16 & 1) && (d >> TILE & 1)
           && __builtin_cpu_supports("avx512f")
           && syscall(SYS_arch_prctl, GET_XCOMP_SUPP, &states) == 0 && (states >> XTILEDATA & 1);
#else
    return false;
#endif
}

int ls_machine_choose(LsArena *a, const char *option, bool tiles, LsMachine *m, const char **from)
{
    const char *own = ls_machine_path(a);
    if (option == NULL && own != NULL && access(own, F_OK) == 0)
        return load(a, own, m, from);
    const char *name = option != NULL ? option : tiles ? "cpu-amx" : "cpu";
    *from = option == NULL && tiles ? "built in, as this processor has AMX tiles" : "built in";
    if (ls_machine_find(m, name))
        return 0;
    if (access(name, F_OK) == 0)
        return load(a, name, m, from);
    fprintf(stderr, "lowerset: --machine: '%s' is neither a file nor one of", name);
    print_names(stderr);
    fprintf(stderr, "\n");
    return LS_EXIT_USAGE;
}
