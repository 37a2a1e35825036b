/* cli/machine_choice.c -- see machine_choice.h. */
#include "cli/machine_choice.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

int ls_machine_choose(LsArena *a, const char *option, LsMachine *m, const char **from)
{
    const char *own = ls_machine_path(a);
    if (option == NULL && own != NULL && access(own, F_OK) == 0)
        return load(a, own, m, from);
    const char *name = option != NULL ? option : "cpu";
    *from = "built in";
    if (ls_machine_find(m, name))
        return 0;
    if (access(name, F_OK) == 0)
        return load(a, name, m, from);
    fprintf(stderr, "lowerset: --machine: '%s' is neither a file nor one of", name);
    print_names(stderr);
    fprintf(stderr, "\n");
    return LS_EXIT_USAGE;
}
