/* cli/report/check_table.c -- see check_table.h. */
#include "cli/report/check_table.h"

#include "base/json_text.h"

#include <inttypes.h>

static const char *const word[] = {"passed", "FAILED", "skipped"};

void ls_check_add(LsCheckTable *t, LsCheckRow row)
{
    t->row = ls_arena_grow(t->arena, t->row, t->nrow, t->nrow + 1u, sizeof *t->row, &t->room);
    t->row[t->nrow++] = row;
}

uint32_t ls_check_failed(const LsCheckTable *t)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < t->nrow; k++)
        n += t->row[k].result == LS_CHECK_FAILED;
    return n;
}

void ls_check_print(const LsCheckTable *t)
{
    uint32_t failed = ls_check_failed(t), made = 0;
    printf("check       result   off by   limit    of what\n");
    for (uint32_t k = 0; k < t->nrow; k++) {
        const LsCheckRow *r = &t->row[k];
        printf("%-10s  %-7s  ", r->name, word[r->result]);
        if (r->limit >= 0 && r->result != LS_CHECK_SKIPPED)
            printf("%-7.1e  %-7.0e  ", r->off, r->limit);
        else
            printf("%-18s", "");
        printf("%s\n", r->says);
        made += r->result != LS_CHECK_SKIPPED;
    }
    if (failed == 0)
        printf("\n%s: plan %s trains as it should here: %" PRIu32 " checks passed\n", t->model,
               t->plan, made);
    else
        printf("\n%s: plan %s: %" PRIu32 " of %" PRIu32 " checks FAILED\n", t->model, t->plan,
               failed, made);
}

void ls_check_print_json(const LsCheckTable *t)
{
    static const char *const result[] = {"passed", "failed", "skipped"};
    printf("{\"schema\": 1, \"model\": ");
    ls_json_text(stdout, t->model);
    printf(", \"plan\": \"%s\", \"passed\": %s, \"checks\": [", t->plan,
           ls_check_failed(t) == 0 ? "true" : "false");
    for (uint32_t k = 0; k < t->nrow; k++) {
        const LsCheckRow *r = &t->row[k];
        printf("%s\n  {\"check\": \"%s\", \"result\": \"%s\"", k > 0 ? "," : "", r->name,
               result[r->result]);
        if (r->limit >= 0 && r->result != LS_CHECK_SKIPPED) {
            ls_json_number(stdout, "off", r->off);
            ls_json_number(stdout, "limit", r->limit);
        }
        printf(", \"says\": ");
        ls_json_text(stdout, r->says);
        printf("}");
    }
    printf("\n]}\n");
}
