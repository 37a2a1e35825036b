/* base/nearest_name.h -- the distance between a misspelt name and a known one. */
#ifndef LS_BASE_NEAREST_NAME_H
#define LS_BASE_NEAREST_NAME_H

/* Returns the number of edits from a to b (Levenshtein). A b of more than LS_SPELLING_MOST
 * characters counts as that many edits away. */
enum { LS_SPELLING_MOST = 32 };
int ls_spelling_distance(const char *a, const char *b);

#endif
