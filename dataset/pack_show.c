/* dataset/pack_show.c -- describes a packed data set. */
#include "dataset/data_commands.h"
#include "dataset/packed_writer.h"

#include "base/json_text.h"
#include "base/plain_text.h"
#include "runtime/base/tensor_copy.h"

#include <inttypes.h>
#include <stdio.h>

static void put_shape(const LsDataField *f)
{
    char dims[96];
    if (f->rank > 0)
        printf(" %s", ls_dims_text(f->rank, f->dim, dims));
}

static void put_list(const char *what, const LsTexts *list)
{
    enum { SHOWN = 12 };
    printf("    %s %" PRId64 ":", what, list->n);
    for (int64_t k = 0; k < list->n && k < SHOWN; k++)
        ls_plain_printf(stdout, "%s %s", k > 0 ? "," : "", list->text[k]);
    printf("%s\n", list->n > SHOWN ? ", ..." : "");
}

static void put_figures(const char *what, const double *v, int64_t n)
{
    enum { SHOWN = 8 };
    printf("    %s", what);
    for (int64_t k = 0; k < n && k < SHOWN; k++)
        printf("%s%.6g", k > 0 ? "," : " ", v[k]);
    printf("%s\n", n > SHOWN ? ",..." : "");
}

static void put_field(const LsDataField *f)
{
    ls_plain_printf(stdout, "  %-12s", f->name);
    printf(" %s, %s%s of %s", f->is_label ? "label" : "input", ls_field_kind_name[f->kind],
           f->rank == 0 ? "" : ":", ls_element_name(f->type));
    put_shape(f);
    printf("\n");
    if (f->classes.n > 0)
        put_list("classes", &f->classes);
    if (ls_alphabet_count(&f->alphabet) > 0)
        printf("    characters %d\n", ls_alphabet_count(&f->alphabet));
    for (int64_t k = 0; k < f->columns; k++) {
        ls_plain_printf(stdout, "    column %s%s", f->column[k].name,
                        f->column[k].one_hot ? " (one hot)" : "");
        printf("\n");
        if (f->column[k].categories.n > 0)
            put_list("  categories", &f->column[k].categories);
    }
    if (f->mean != NULL) {
        put_figures("mean", f->mean, f->figures);
        put_figures("std ", f->std, f->figures);
    }
}

static void put_words(const LsDataFile *d, bool checked)
{
    ls_plain_printf(stdout, "%s: ", d->f->path);
    printf("%" PRId64 " samples, %zu bytes\n", d->samples, d->f->size);
    for (int64_t k = 0; k < d->fields; k++)
        put_field(&d->field[k]);
    for (int64_t k = 0; k < d->sources.n; k++) {
        ls_plain_printf(stdout, "  made of %s", d->sources.text[k]);
        printf("\n");
    }
    if (checked)
        printf("all %" PRId64 " blocks have their checksums\n", d->blocks);
}

static void put_json_texts(const char *key, const LsTexts *list)
{
    printf(", \"%s\": [", key);
    for (int64_t k = 0; k < list->n; k++) {
        printf("%s", k > 0 ? ", " : "");
        ls_json_text(stdout, list->text[k]);
    }
    printf("]");
}

static void put_json_figures(const char *key, const double *v, int64_t n)
{
    printf(", \"%s\": [", key);
    for (int64_t k = 0; k < n; k++)
        printf("%s%.17g", k > 0 ? ", " : "", v[k]);
    printf("]");
}

static void put_json_field(const LsDataField *f)
{
    printf("{\"name\": ");
    ls_json_text(stdout, f->name);
    printf(", \"role\": \"%s\", \"kind\": \"%s\", \"type\": \"%s\", \"shape\": [",
           f->is_label ? "label" : "input", ls_field_kind_name[f->kind], ls_element_name(f->type));
    for (int k = 0; k < f->rank; k++)
        printf("%s%" PRId64, k > 0 ? ", " : "", f->dim[k]);
    printf("], \"offset\": %" PRId64 ", \"bytes\": %" PRId64, f->at, f->bytes);
    if (f->classes.n > 0)
        put_json_texts("classes", &f->classes);
    if (ls_alphabet_count(&f->alphabet) > 0)
        printf(", \"characters\": %d", ls_alphabet_count(&f->alphabet));
    if (f->mean != NULL) {
        put_json_figures("mean", f->mean, f->figures);
        put_json_figures("std", f->std, f->figures);
    }
    if (f->columns > 0) {
        printf(", \"columns\": [");
        for (int64_t k = 0; k < f->columns; k++) {
            printf("%s{\"name\": ", k > 0 ? ", " : "");
            ls_json_text(stdout, f->column[k].name);
            if (f->column[k].categories.n > 0)
                put_json_texts("categories", &f->column[k].categories);
            printf("%s}", f->column[k].one_hot ? ", \"one_hot\": true" : "");
        }
        printf("]");
    }
    printf("}");
}

static void put_json(const LsDataFile *d, bool checked)
{
    printf("{\"schema\": 1, \"samples\": %" PRId64 ", \"bytes\": %zu, \"blocks\": %" PRId64
           ", \"checked\": %s, \"fields\": [",
           d->samples, d->f->size, d->blocks, checked ? "true" : "false");
    for (int64_t k = 0; k < d->fields; k++) {
        printf("%s", k > 0 ? ", " : "");
        put_json_field(&d->field[k]);
    }
    printf("]");
    put_json_texts("sources", &d->sources);
    printf("}\n");
}

int ls_pack_show(const char *path, bool check, bool json, char why[LS_PACK_WHY])
{
    LsFile f = {0};
    LsDataFile d = {0};
    LsError e = {0};
    bool ok = ls_file_map(&f, path, &e) && ls_data_file_open(&d, &f, &e);
    for (int64_t k = 0; ok && check && k < d.fields; k++)
        ok = ls_blocks_check(&d, &d.field[k], &e);
    if (ok)
        (json ? put_json : put_words)(&d, check);
    ls_data_file_close(&d);
    if (f.data != NULL)
        ls_file_unmap(&f);
    snprintf(why, LS_PACK_WHY, "%s", e.text);
    return (int)e.code;
}
