/* codegen/program/adapter_tables.c -- see the header. */
#include "codegen/program/adapter_tables.h"

#include "codegen/program/packed_tables.h"
#include "compiler/adapters/adapters.h"

#include <inttypes.h>
#include <string.h>

/* The state of that name; behind all states are the weights that are kept in few bits. */
static uint32_t state_of(const LsAddresses *a, const char *name)
{
    uint32_t k = 0;
    while (k < a->nstate && strcmp(a->state[k].row.t.name, name) != 0)
        k++;
    const int64_t packed = k < a->nstate ? -1 : ls_packed_number(a, name);
    return packed < 0 ? k : a->nstate + (uint32_t)packed;
}

static void print_entries(const LsCode *c, LsEmit *e)
{
    ls_emit_line(e, "static const LsAdapterEntry adapter_entry[] = {");
    for (uint32_t k = 0; k < c->adapters->ntensor; k++) {
        const LsAdapterTensor *t = &c->adapters->tensor[k];
        fprintf(e->to, "    {%u, ", state_of(c->addresses, t->name));
        ls_emit_string(e->to, t->key);
        fprintf(e->to, "},\n");
    }
    ls_emit_line(e, "};");
}

static void print_merged(const LsCode *c, LsEmit *e)
{
    ls_emit_line(e, "static const LsMergedWeight adapter_merged[] = {");
    for (uint32_t k = 0; k < c->adapters->nadapted; k++) {
        const LsAdapted *of = &c->adapters->adapted[k];
        const LsAddresses *a = c->addresses;
        ls_emit_line(e, "    {%u, %u, %u, %" PRId64 ", %.17g, %s},", state_of(a, of->weight),
                     state_of(a, of->a), state_of(a, of->b),
                     of->magnitude != NULL ? (int64_t)state_of(a, of->magnitude) : -1, of->scale,
                     of->turned ? "true" : "false");
    }
    ls_emit_line(e, "};");
}

void ls_adapter_tables_print(const LsCode *c, LsEmit *e)
{
    fprintf(e->to, "static const char adapter_config[] = ");
    ls_emit_string(e->to, c->adapters->config);
    fprintf(e->to, ";\n");
    print_entries(c, e);
    if (c->adapters->merge)
        print_merged(c, e);
}

void ls_adapter_tables_entry(const LsCode *c, LsEmit *e)
{
    ls_emit_line(e, ".adapters = {adapter_config, adapter_entry, %u, %s, %u},",
                 c->adapters->ntensor, c->adapters->merge ? "adapter_merged" : "NULL",
                 c->adapters->merge ? c->adapters->nadapted : 0);
}
