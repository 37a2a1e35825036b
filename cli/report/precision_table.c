/* cli/report/precision_table.c -- lowerset ops --precision=T: what is stored in 16 bits, operator
 * by operator. */
#include "cli/report/precision_table.h"

#include "compiler/ir/precision.h"

#include <string.h>

/* "0 1 2": the operands of these bits. */
static const char *operands(unsigned bits, char text[32])
{
    size_t n = 0;
    text[0] = '\0';
    for (int k = 0; bits >> k != 0 && n + 4 < 32; k++)
        if (bits >> k & 1)
            n += (size_t)snprintf(text + n, 32 - n, n > 0 ? " %d" : "%d", k);
    return text;
}

void ls_precision_table(FILE *to, const char *type)
{
    char text[32];
    fprintf(to, "%-22s %-18s %s\n", "operator", "computes with", "stores");
    for (LsOpCode op = 1; op < LS_NOPS; op++) {
        const LsPrecisionRow *row = &ls_precision_row[op];
        const char *name = ls_op[op]->name;
        switch (row->rule) {
        case LS_PR_PRODUCT:
            fprintf(to, "%-22s %s of operands %-4s  %s%s\n", name, type,
                    operands(row->rounded, text), row->results > 0 ? type : "f32",
                    row->results > 0 && ls_op[op]->nout > row->results ? "; statistics f32" : "");
            break;
        case LS_PR_LIKE:
            fprintf(to, "%-22s %-18s as operand %d%s\n", name, "f32", row->like,
                    ls_op[op]->nout > 1 ? "; statistics f32" : "");
            break;
        case LS_PR_WIDEST:
            fprintf(to, "%-22s %-18s the widest of its operands\n", name, "f32");
            break;
        case LS_PR_WIDE:
            fprintf(to, "%-22s %-18s f32\n", name, "f32");
            break;
        default:
            break;
        }
    }
}
