/* tests/support/make_pictures.c -- a folder of pictures for tests of the command line.
 *   make_pictures FOLDER N CLASS...   N of 24 x 20 and other sizes in each class, JPEG and PNG
 *   make_pictures --kinds FOLDER      one of each kind of file, 16 x 12
 *   make_pictures --masks PICTURES MASKS N   pairs of 16 x 12, masks with a palette or in grey */
#include "tests/support/picture_files.h"

#include <sys/stat.h>

static void make_classes(const char *folder, int n, char **class, int classes)
{
    char path[4096];
    mkdir(folder, 0777);
    for (int c = 0; c < classes; c++) {
        snprintf(path, sizeof path, "%s/%s", folder, class[c]);
        mkdir(path, 0777);
        for (int k = 0; k < n; k++) {
            const int w = 24 + k % 5, h = 20 + k % 3, seed = 7 * c + k;
            snprintf(path, sizeof path, "%s/%s/p%06d.%s", folder, class[c], k,
                     k % 2 ? "png" : "jpg");
            if (k % 2)
                write_png(path, PNG_COLOR_TYPE_RGB, 8, w, h, seed);
            else
                write_jpeg(path, JCS_RGB, 0, w, h, seed, 0, 0);
        }
    }
}

static const char *in(const char *folder, const char *name)
{
    static char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void make_kinds(const char *d)
{
    enum { W = 16, H = 12 };
    mkdir(d, 0777);
    write_png(in(d, "alpha.png"), PNG_COLOR_TYPE_RGBA, 8, W, H, 1);
    write_png(in(d, "bit.png"), PNG_COLOR_TYPE_GRAY, 1, W, H, 1);
    write_png(in(d, "colour16.png"), PNG_COLOR_TYPE_RGB, 16, W, H, 1);
    write_png(in(d, "grey.png"), PNG_COLOR_TYPE_GRAY, 8, W, H, 1);
    write_png(in(d, "grey16.png"), PNG_COLOR_TYPE_GRAY, 16, W, H, 1);
    write_png(in(d, "palette.png"), PNG_COLOR_TYPE_PALETTE, 8, W, H, 1);
    write_jpeg(in(d, "cmyk.jpg"), JCS_CMYK, 0, W, H, 1, 0, 0);
    write_jpeg(in(d, "grey.jpeg"), JCS_GRAYSCALE, 0, W, H, 1, 0, 0);
    write_jpeg(in(d, "ycck.JPG"), JCS_CMYK, 1, W, H, 1, 0, 0);
    write_jpeg(in(d, "turned.jpg"), JCS_RGB, 0, H, W, 1, 6, 0);
}

static void make_masks(const char *pictures, const char *masks, int n)
{
    char name[64];
    mkdir(pictures, 0777);
    mkdir(masks, 0777);
    for (int k = 0; k < n; k++) {
        snprintf(name, sizeof name, "%d.jpg", k);
        write_jpeg(in(pictures, name), JCS_RGB, 0, 16, 12, k, 0, 0);
        snprintf(name, sizeof name, "%d.png", k);
        if (k % 2)
            write_png(in(masks, name), PNG_COLOR_TYPE_PALETTE, 4, 16, 12, k);
        else
            write_png(in(masks, name), PNG_COLOR_TYPE_GRAY, 4, 16, 12, k);
    }
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--kinds") == 0)
        make_kinds(argv[2]);
    else if (argc == 5 && strcmp(argv[1], "--masks") == 0)
        make_masks(argv[2], argv[3], atoi(argv[4]));
    else if (argc > 3)
        make_classes(argv[1], atoi(argv[2]), argv + 3, argc - 3);
    else
        return 2;
    return 0;
}
