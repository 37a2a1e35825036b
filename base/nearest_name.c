/* base/nearest_name.c */
#include "base/nearest_name.h"

#include <string.h>

int ls_spelling_distance(const char *a, const char *b)
{
    int row[LS_SPELLING_MOST + 1], n = (int)strlen(b);
    if (n > LS_SPELLING_MOST)
        return LS_SPELLING_MOST;
    for (int j = 0; j <= n; j++)
        row[j] = j;
    for (int i = 1; a[i - 1] != '\0'; i++) {
        int diagonal = row[0];
        row[0] = i;
        for (int j = 1; j <= n; j++) {
            int change = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            row[j] = row[j] < row[j - 1] ? row[j] + 1 : row[j - 1] + 1;
            row[j] = row[j] < change ? row[j] : change;
        }
    }
    return row[n];
}
