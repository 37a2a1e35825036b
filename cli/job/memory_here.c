/* cli/job/memory_here.c -- see memory_here.h. */
#include "cli/job/memory_here.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysinfo.h>

enum { PATH = 4096 };

/* A group without a limit has the text "max", or a huge number. */
static int64_t read_limit(const char *root, const char *group, int n, const char *file,
                          int64_t least)
{
    char path[PATH];
    int64_t limit;
    if (snprintf(path, sizeof path, "%s%.*s/%s", root, n, group, file) >= (int)sizeof path)
        return least;
    FILE *f = fopen(path, "r");
    if (f == NULL)
        return least;
    least = fscanf(f, "%" SCNd64, &limit) == 1 && limit > 0 && limit < least ? limit : least;
    fclose(f);
    return least;
}

/* A group's limit holds for its subgroups, so all groups above count. Some of them may be missing
 * where the process sees only a part of the tree. */
static int64_t walk_up(const char *root, const char *group, const char *file, int64_t least)
{
    int n = (int)strcspn(group, "\n");
    while (n > 0 && group[n - 1] == '/')
        n--;
    least = read_limit(root, group, n, file, least);
    while (n > 0) {
        while (n > 0 && group[n - 1] != '/')
            n--;
        n -= n > 0;
        least = read_limit(root, group, n, file, least);
    }
    return least;
}

static bool is_memory(const char *controllers, const char *end)
{
    for (const char *at = controllers; at < end; at += strcspn(at, ",:") + 1)
        if (strncmp(at, "memory", 6) == 0 && (at[6] == ',' || at[6] == ':'))
            return true;
    return false;
}

int64_t ls_memory_limit(const char *groups, const char *root, int64_t least)
{
    char line[PATH], v1[PATH], mixed[PATH];
    snprintf(v1, sizeof v1, "%s/memory", root);
    snprintf(mixed, sizeof mixed, "%s/unified", root);      /* version 2 together with version 1 */
    least = walk_up(root, "", "memory.max", least);
    least = walk_up(v1, "", "memory.limit_in_bytes", least);
    FILE *f = fopen(groups, "r");
    while (f != NULL && fgets(line, sizeof line, f) != NULL) {      /* ID:CONTROLLERS:/GROUP */
        char *controllers = strchr(line, ':');
        char *group = controllers != NULL ? strchr(controllers + 1, ':') : NULL;
        if (group == NULL)
            continue;
        if (group == controllers + 1) {
            least = walk_up(root, group + 1, "memory.max", least);
            least = walk_up(mixed, group + 1, "memory.max", least);
        } else if (is_memory(controllers + 1, group)) {
            least = walk_up(v1, group + 1, "memory.limit_in_bytes", least);
        }
    }
    if (f != NULL)
        fclose(f);
    return least;
}

int64_t ls_memory_here(void)
{
    struct sysinfo info;
    int64_t all = sysinfo(&info) == 0 ? (int64_t)(info.totalram * (uint64_t)info.mem_unit) : 0;
    return ls_memory_limit("/proc/self/cgroup", "/sys/fs/cgroup", all);
}
