/* dataset/picture_list.h -- the pictures below folders, in an order that does not depend on the
 * file system: folders and files by their names' bytes. */
#ifndef LS_DATASET_PICTURE_LIST_H
#define LS_DATASET_PICTURE_LIST_H

#include "dataset/pack_source.h"

typedef struct LsPictureName {
    int64_t name;          /* where it begins in `names` */
    int32_t folder, class; /* class -1: none */
} LsPictureName;

typedef struct LsPictureFolder {
    char *path;
    int root;
} LsPictureFolder; /* below source `root` */

typedef struct LsPictureList {
    LsPictureName *item;
    int64_t n, cap;
    char *names;
    int64_t used, room;
    LsPictureFolder *folder;
    int64_t folders;
    LsTexts classes; /* names of the folders of the sources, sorted; n 0: no classes */
    int64_t others;  /* files that are no pictures by their names */
} LsPictureList;

/* Lists the sources. Classes are the folders within each, unless there are masks; then, or where a
 * source has no folders, there are none. like: classes that there may be; NULL: those that are
 * found. */
bool ls_pictures_list(LsPictureList *l, const LsPackOptions *o, const LsTexts *like, LsError *e);
void ls_pictures_free(LsPictureList *l);
/* The path of picture k; false: it is too long. */
bool ls_picture_path(const LsPictureList *l, int64_t k, char path[LS_PATH], LsError *e);

#endif
