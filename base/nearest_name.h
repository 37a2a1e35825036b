/* base/nearest_name.h -- the name a user may have meant. */
#ifndef LS_BASE_NEAREST_NAME_H
#define LS_BASE_NEAREST_NAME_H

/* Edits to get from a to b (Levenshtein). b of more than LS_SPELLING_MOST characters is as far
 * away as that, whatever a is. */
enum { LS_SPELLING_MOST = 32 };
int ls_spelling_distance(const char *a, const char *b);

#endif
