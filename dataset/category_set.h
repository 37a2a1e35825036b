/* dataset/category_set.h -- different texts and their numbers. */
#ifndef LS_DATASET_CATEGORY_SET_H
#define LS_DATASET_CATEGORY_SET_H

#include "runtime/data/data_file.h"

typedef struct LsCategories {
    LsTexts names;              /* number k is names.text[k], on the heap */
    int64_t *slot, slots;       /* hash table: number + 1; slots is a power of two, or 0 */
} LsCategories;

int64_t ls_category_find(const LsCategories *c, const char *name);      /* -1: it is not there */
bool ls_category_add(LsCategories *c, const char *name);        /* false: no memory */
/* Numbers them in the order of their bytes. Likewise. */
bool ls_categories_sort(LsCategories *c);
void ls_categories_free(LsCategories *c);

#endif
