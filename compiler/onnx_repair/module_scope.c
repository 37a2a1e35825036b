/* compiler/onnx_repair/module_scope.c -- see the header. */
#include "compiler/onnx_repair/module_scope.h"

#include <string.h>

const char *ls_scope_module(LsArena *a, const char *node)
{
    const char *last = strrchr(node, '/');
    if (node[0] != '/' || last == node)
        return NULL;
    char *module = ls_arena_printf(a, "%.*s", (int)(last - node - 1), node + 1);
    for (char *p = module; *p != '\0'; p++)
        *p = *p == '/' ? '.' : *p;
    return module;
}

/* The length of a name without the number of a further call: norm of norm_1. */
static size_t without_number(const char *module)
{
    size_t n = strlen(module), k = n;
    while (k > 0 && module[k - 1] >= '0' && module[k - 1] <= '9')
        k--;
    return k < n && k > 1 && module[k - 1] == '_' ? k - 1 : n;
}

/* `part` is the beginning of `whole`, up to a dot or the end. */
static bool around(const char *part, size_t n, const char *whole, size_t m)
{
    return n <= m && strncmp(part, whole, n) == 0 && (n == m || n == 0 || whole[n] == '.');
}

bool ls_scope_owns(const char *module, const char *parameter)
{
    const char *dot = strrchr(parameter, '.');
    const size_t own = dot != NULL ? (size_t)(dot - parameter) : 0;
    const size_t length[] = {strlen(module), without_number(module)};
    for (int k = 0; k < 2; k++)
        if (around(module, length[k], parameter, own) || around(parameter, own, module, length[k]))
            return true;
    return false;
}

const char *ls_scope_of_builder(LsArena *a, const char *tensor)
{
    static const char layers[] = "model.layers.", attention[] = ".attn.";
    const char *end = strstr(tensor, ".MatMul.weight");
    if (end == NULL)
        end = strstr(tensor, ".Add.bias");
    if (end == NULL || end == tensor)
        return NULL;
    const char *at = strncmp(tensor, layers, sizeof layers - 1) == 0 ? strstr(tensor, attention)
                                                                     : NULL;
    if (at == NULL || at > end)
        return ls_arena_printf(a, "%.*s", (int)(end - tensor), tensor);
    return ls_arena_printf(a, "%.*s.self_attn%.*s", (int)(at - tensor), tensor,
                           (int)(end - at) - (int)sizeof attention + 2, at + sizeof attention - 2);
}
