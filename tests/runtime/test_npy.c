/* tests/runtime/test_npy.c -- NPY and NPZ files are read as NumPy writes them, and damaged ones are
 * refused. */
#include "tests/support/npz_util.h"

#include <math.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static LsError e;

/* An NPY file in memory: version, header text, data. */
static size_t make(unsigned char *to, int version, const char *header, const void *data, size_t n)
{
    size_t len = strlen(header), at = version == 1 ? 10 : 12;
    memcpy(to, "\x93NUMPY", 6);
    to[6] = (unsigned char)version;
    memset(to + 7, 0, 5);
    to[8] = (unsigned char)len;
    memcpy(to + at, header, len);
    memcpy(to + at + len, data, n);
    return at + len + n;
}

static bool reads(LsArray *a, int version, const char *header, const void *data, size_t n)
{
    static unsigned char file[1024];
    e = (LsError){0};
    size_t size = make(file, version, header, data, n);
    return ls_npy_read(a, file, size, "test.npy", &e);
}

START_TEST(every_element_type_is_converted)
{
    LsArray a;
    float f[] = {1.5f, -2};
    double d[] = {1e300, -3};
    int64_t l[] = {-5, (int64_t)1 << 40};
    int32_t i[] = {-6, 7};
    ck_assert(
        reads(&a, 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", f, sizeof f));
    ck_assert_double_eq(ls_array_real(&a, 1), -2);
    ck_assert(
        reads(&a, 2, "{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }", d, sizeof d));
    ck_assert_double_eq(ls_array_real(&a, 0), 1e300);
    ck_assert_int_eq(ls_array_int(&a, 1), -3);
    ck_assert(
        reads(&a, 1, "{'descr': '<i8', 'fortran_order': False, 'shape': (2,), }", l, sizeof l));
    ck_assert_int_eq(ls_array_int(&a, 1), (int64_t)1 << 40);
    ck_assert(
        reads(&a, 1, "{'descr': '<i4', 'fortran_order': False, 'shape': (2,), }", i, sizeof i));
    ck_assert_int_eq(ls_array_int(&a, 0), -6);
    ck_assert(
        reads(&a, 1, "{'descr': '|u1', 'fortran_order': False, 'shape': (3,), }", "\xff\0\1", 3));
    ck_assert_int_eq(ls_array_int(&a, 0), 255);
    ck_assert(
        reads(&a, 1, "{'descr': '|i1', 'fortran_order': False, 'shape': (3,), }", "\xff\0\1", 3));
    ck_assert_int_eq(ls_array_int(&a, 0), -1);
    ck_assert(
        reads(&a, 1, "{'descr': '|b1', 'fortran_order': False, 'shape': (3,), }", "\7\0\1", 3));
    ck_assert_int_eq(ls_array_int(&a, 0), 1);
    ck_assert(reads(&a, 1, "{'descr': '>i2', 'fortran_order': False, 'shape': (1,), }", "\1\2", 2));
    ck_assert_int_eq(ls_array_int(&a, 0), 258);
    ck_assert(reads(&a, 1, "{'descr': '>f4', 'fortran_order': False, 'shape': (1,), }",
                    "\x3f\xc0\0\0", 4));
    ck_assert_double_eq(ls_array_real(&a, 0), 1.5);
}
END_TEST

START_TEST(reals_of_16_bits_are_widened)
{
    const uint16_t half[] = {0x3e00, 0xc000, 0x0001, 0xfc00},
                   brain[] = {0x3fc0, 0xc000, 0x0001, 0xff80};
    const float half_is[] = {1.5f, -2, 0x1p-24f, -INFINITY},
                brain_is[] = {1.5f, -2, 0x1p-133f, -INFINITY};
    float to[8] = {0};
    LsArray a;
    ck_assert(reads(&a, 1, "{'descr': '<f2', 'fortran_order': False, 'shape': (4,), }", half,
                    sizeof half));
    ls_array_floats(&a, 0, 4, to, 2);
    for (int k = 0; k < 4; k++)
        ck_assert(to[2 * k] == half_is[k] && ls_array_real(&a, k) == (double)half_is[k]);
    ck_assert_int_eq(ls_array_int(&a, 1), -2);
    ck_assert(reads(&a, 1, "{'descr': '<V2', 'fortran_order': False, 'shape': (4,), }", brain,
                    sizeof brain));
    ls_array_floats(&a, 1, 3, to, 1);
    for (int k = 0; k < 4; k++)
        ck_assert((k == 0 || to[k - 1] == brain_is[k])
                  && ls_array_real(&a, k) == (double)brain_is[k]);
    ck_assert(
        reads(&a, 1, "{'descr': '>f2', 'fortran_order': False, 'shape': (1,), }", "\x3e\0", 2));
    ls_array_floats(&a, 0, 1, to, 1);
    ck_assert_float_eq(to[0], 1.5f);
}
END_TEST

START_TEST(scalars_and_empty_arrays_have_a_shape)
{
    LsArray a;
    float f = 3;
    ck_assert(reads(&a, 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (), }", &f, 4));
    ck_assert_int_eq(a.rank, 0);
    ck_assert_int_eq(a.count, 1);
    ck_assert(reads(&a, 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (0, 5), }", &f, 0));
    ck_assert_int_eq(a.count, 0);
}
END_TEST

START_TEST(headers_that_cannot_be_used_are_refused)
{
    static const struct { const char *header, *part;
    } bad[] = {
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (9,), }",
         "truncated: shape 9 takes more than the 8 bytes of float32"},
        {"{'descr': '<f4', 'fortran_order': True, 'shape': (1, 2), }", "Fortran"},
        {"{'descr': '<c8', 'fortran_order': False, 'shape': (1,), }", "'<c8' is not read"},
        {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", "not read"},
        {"{'descr': '|V2', 'fortran_order': False, 'shape': (1,), }",
         "save array.view(ml_dtypes.bfloat16)"},
        {"{'descr': '>V2', 'fortran_order': False, 'shape': (1,), }", "not read"},
        {"{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", "not read"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }", "impossible shape"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,", "impossible shape"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999, 99999999999), }",
         "impossible"},
        {"{'descr': '<f4', 'shape': (1,1,1,1,1,1,1,1,1), }", "impossible shape"},
        {"{'descr': '<f4'}", "no shape"},
        {"{}", "not read"},
        {"{'descr': ", "not read"},
        {"{'descr': '<", "not read"},
    };
    for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++) {
        LsArray a;
        ck_assert_msg(!reads(&a, 1, bad[k].header, "01234567", 8), "%s", bad[k].header);
        ck_assert_int_eq(e.code, LS_EXIT_DATA);
        ck_assert_msg(strstr(e.text, bad[k].part) != NULL, "%s\n%s", bad[k].header, e.text);
    }
}
END_TEST

/* A header cut at any byte: nothing beyond its last byte is read. */
START_TEST(no_header_is_read_past_its_end)
{
    static const char whole[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (12, 3), }";
    long page = sysconf(_SC_PAGESIZE);
    unsigned char *at = mmap(NULL, (size_t)(2 * page), PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), file[256];
    ck_assert(at != MAP_FAILED && mprotect(at + page, (size_t)page, PROT_NONE) == 0);
    for (size_t n = 0; n < sizeof whole; n++) {
        LsArray a;
        char header[sizeof whole];
        snprintf(header, sizeof header, "%.*s", (int)n, whole);
        size_t size = make(file, 2, header, "", 0);
        memcpy(at + page - size, file, size);
        e = (LsError){0};
        ck_assert(!ls_npy_read(&a, at + page - size, size, "test.npy", &e));
        ck_assert_int_eq(e.code, LS_EXIT_DATA);
    }
    munmap(at, (size_t)(2 * page));
}
END_TEST

START_TEST(a_header_may_be_long)
{
    enum { LONG = 60000 };
    static char header[LONG + 1];
    static unsigned char file[LONG + 64];
    float f[2] = {1, 2};
    LsArray a;
    memset(header, ' ', LONG);
    memcpy(header, "{'descr': '<f4', ", 17);
    memcpy(header + LONG - 21, "'shape': (2,),      }", 21);
    for (int version = 1; version <= 3; version++) {
        size_t size = make(file, version, header, f, sizeof f);
        file[9] = LONG >> 8;
        e = (LsError){0};
        ck_assert_msg(ls_npy_read(&a, file, size, "test.npy", &e), "%s", e.text);
        ck_assert(a.count == 2 && ls_array_real(&a, 1) == 2);
    }
}
END_TEST

static void write_sample(const char *path)
{
    float f[6] = {1, 2, 3, 4, 5, 6};
    int64_t l[2] = {7, -8};
    write_npz(path, 3, (NpzItem[]){{"in/x", LS_F32, 2, {2, 3}, f}, {"label", LS_I64, 1, {2}, l},
                                   {"loss", LS_F32, 0, {0}, f}});
}

START_TEST(an_archive_gives_back_what_was_written)
{
    LsFile f;
    LsArray a;
    bool found;
    char names[64];
    const char *name;
    size_t len;
    e = (LsError){0};
    write_sample("a.npz");
    ck_assert(ls_file_map(&f, "a.npz", &e));
    ck_assert(ls_npz_find(&f, "label", &a, &found, &e) && found);
    ck_assert(a.type == LS_I64 && a.rank == 1 && a.dim[0] == 2);
    ck_assert_int_eq(ls_array_int(&a, 1), -8);
    ck_assert(ls_npz_find(&f, "in/x", &a, &found, &e) && found);
    ck_assert(a.rank == 2 && a.dim[1] == 3 && ls_array_real(&a, 5) == 6);
    ck_assert(ls_npz_find(&f, "x", &a, &found, &e) && !found);
    ls_npz_names(&f, names, sizeof names);
    ck_assert_str_eq(names, "in/x, label, loss");
    ck_assert_uint_eq(ls_npz_count(&f), 3);
    ck_assert(ls_npz_at(&f, 1, &name, &len, &a, &found, &e) && found);
    ck_assert(len == 5 && memcmp(name, "label", 5) == 0);
    ck_assert(a.type == LS_I64 && ls_array_int(&a, 0) == 7);
    ck_assert(ls_npz_at(&f, 3, &name, &len, &a, &found, &e) && !found);
    ls_file_unmap(&f);
}
END_TEST

/* Counts are where loops end. */
START_TEST(more_members_than_a_directory_has_room_for_are_none)
{
    LsFile f;
    LsArray a;
    bool found;
    static unsigned char copy[4096];
    e = (LsError){0};
    write_sample("a.npz");
    ck_assert(ls_file_map(&f, "a.npz", &e));
    ck_assert_uint_le(f.size, sizeof copy);
    memcpy(copy, f.data, f.size);
    LsFile bad = {"bad.npz", copy, f.size};
    memset(copy + f.size - 12, 0xff, 2);
    ck_assert_uint_eq(ls_npz_count(&bad), 0);
    ck_assert(!ls_npz_find(&bad, "label", &a, &found, &e));
    ck_assert_msg(strstr(e.text, "the archive has no directory") != NULL, "%s", e.text);
    ls_file_unmap(&f);
}
END_TEST

START_TEST(numpy_reads_our_archives_and_we_read_its)
{
    static const char script[] =
        "import numpy as np\n"
        "z = np.load('a.npz')\n"
        "assert z['in/x'].shape == (2, 3) and z['in/x'].dtype == np.float32, z['in/x']\n"
        "assert z['in/x'].sum() == 21 and z['label'].tolist() == [7, -8] and z['loss'].shape == "
        "()\n"
        "np.savez('b.npz', x=np.arange(5, dtype=np.int32), y=np.ones((2, 2)))\n"
        "np.savez_compressed('c.npz', x=np.zeros(1000))\n";
    LsFile f;
    LsArray a;
    bool found;
    e = (LsError){0};
    write_sample("a.npz");
    write_bytes("t.py", script, sizeof script - 1);
    if (system("/usr/bin/python3 -c 'import numpy' 2>/dev/null") != 0) {
        printf("skipped: no NumPy to compare with\n");
        return;
    }
    ck_assert_int_eq(system("/usr/bin/python3 t.py"), 0);
    ck_assert(ls_file_map(&f, "b.npz", &e));
    ck_assert_msg(ls_npz_find(&f, "x", &a, &found, &e) && found, "%s", e.text);
    ck_assert_int_eq(ls_array_int(&a, 4), 4);
    ls_file_unmap(&f);
    ck_assert(ls_file_map(&f, "c.npz", &e));
    ck_assert(!ls_npz_find(&f, "x", &a, &found, &e));
    ck_assert_ptr_nonnull(strstr(e.text, "not savez_compressed"));
    ls_file_unmap(&f);
}
END_TEST

/* The UTF-8 flag of every member's two headers. */
static void check_flags(const char *path, int member, const bool *utf8)
{
    LsFile f;
    int local = 0, central = 0;
    e = (LsError){0};
    ck_assert(ls_file_map(&f, path, &e));
    for (size_t k = 0; k + 46 < f.size; k++) {
        bool l = memcmp(f.data + k, "PK\3\4", 4) == 0, c = memcmp(f.data + k, "PK\1\2", 4) == 0;
        if (l)
            ck_assert_int_eq(f.data[k + 7] >> 3 & 1, utf8[local++]);
        if (c)
            ck_assert_int_eq(f.data[k + 9] >> 3 & 1, utf8[central++]);
    }
    ck_assert(local == member && central == member);
    ls_file_unmap(&f);
}

START_TEST(names_beyond_ascii_are_said_to_be_utf8)
{
    static const char script[] =
        "import zipfile\n"
        "z = zipfile.ZipFile('u.npz')\n"
        "assert z.namelist()[:2] == ['x.npy', '\\u5c64/w\\xe9\\U0001f600.npy'], "
        "z.namelist()\n"
        "assert z.testzip() is None\n";
    static const char *const name[] = {"x", "\xe5\xb1\xa4/w\xc3\xa9\xf0\x9f\x98\x80", "latin\xe9",
                                       "cut\xe5\xb1", "\xed\xa0\x80", "\xc0\xaf"};
    static const bool utf8[] = {false, true, false, false, false, false};
    float f = 1;
    NpzItem item[6];
    LsFile file;
    LsArray a;
    bool found;
    for (int k = 0; k < 6; k++)
        item[k] = (NpzItem){name[k], LS_F32, 1, {1}, &f};
    write_npz("u.npz", 6, item);
    check_flags("u.npz", 6, utf8);
    e = (LsError){0};
    ck_assert(ls_file_map(&file, "u.npz", &e));
    for (int k = 0; k < 6; k++)
        ck_assert(ls_npz_find(&file, name[k], &a, &found, &e) && found);
    ls_file_unmap(&file);
    write_bytes("t.py", script, sizeof script - 1);
    if (system("python3 --version > v 2>&1") != 0)
        printf("skipped: no Python to read it\n");
    else
        ck_assert_int_eq(system("python3 t.py"), 0);
}
END_TEST

START_TEST(a_name_that_fits_no_archive_is_refused)
{
    static char name[65540];
    LsNpz *z = calloc(1, sizeof *z);
    LsNpzMember room[2];
    e = (LsError){0};
    memset(name, 'n', sizeof name - 1);
    ck_assert(ls_npz_open(z, "a.npz", room, 2, &e));
    ck_assert(!ls_npz_begin(z, name, LS_F32, 0, NULL, &e));
    ck_assert_ptr_nonnull(strstr(e.text, "65539 bytes does not fit"));
    e = (LsError){0};
    name[65531] = '\0';
    ck_assert(ls_npz_begin(z, name, LS_F32, 0, NULL, &e));
    ls_npz_write(z, &(float){3}, 4);
    ck_assert_msg(ls_npz_close(z, &e), "%s", e.text);
    free(z);
    LsFile f;
    LsArray a;
    bool found;
    ck_assert(ls_file_map(&f, "a.npz", &e));
    ck_assert(ls_npz_find(&f, name, &a, &found, &e) && found);
    ls_file_unmap(&f);
}
END_TEST

/* Any cut and any flipped byte gives the right values, a clear error, or "not there": never a
 * crash. */
static unsigned char *put(unsigned char *to, int n, uint64_t v)
{
    for (int k = 0; k < n; k++)
        *to++ = (unsigned char)(v >> 8 * k);
    return to;
}

/* The archive of one member that write_npz wrote, with the directory that archives of more than
 * 4 GiB have: sizes and places stand in an extra field, after another one, and in a record of
 * 64 bits, which a locator names. `*record`, `*locator`: where they are. */
static size_t with_zip64(unsigned char *to, const LsFile *f, size_t *record, size_t *locator)
{
    const unsigned char *end = f->data + f->size - 22;
    const size_t start = end[16] | end[17] << 8, name = f->data[start + 28];
    const size_t directory = 46 + name + 4 + 2 + 4 + 24;
    memcpy(to, f->data, start + 46 + name);
    const size_t bytes = f->data[start + 24] | f->data[start + 25] << 8;
    memset(to + start + 20, 0xff, 8);
    memset(to + start + 42, 0xff, 4);
    put(to + start + 30, 2, 4 + 2 + 4 + 24);
    unsigned char *p = put(put(put(to + start + 46 + name, 2, 0x7875), 2, 2), 2, 0);
    p = put(put(put(put(put(p, 2, 1), 2, 24), 8, bytes), 8, bytes), 8, 0);
    ck_assert_uint_eq((size_t)(p - to), start + directory);
    *record = (size_t)(p - to);
    p = put(put(put(put(put(p, 4, 0x06064b50), 8, 44), 2, 45), 2, 45), 8, 0);
    p = put(put(put(put(p, 8, 1), 8, 1), 8, directory), 8, start);
    *locator = (size_t)(p - to);
    p = put(put(put(put(p, 4, 0x07064b50), 4, 0), 8, *record), 4, 1);
    p = put(put(put(put(p, 4, 0x06054b50), 4, 0), 4, 0xffffffff), 8, UINT64_MAX);
    return (size_t)(put(p, 2, 0) - to);
}

START_TEST(a_directory_of_64_bits_is_read)
{
    static unsigned char copy[1024];
    const int64_t l[2] = {7, -8};
    LsFile f;
    LsArray a;
    bool found;
    size_t record, locator;
    e = (LsError){0};
    write_npz("one.npz", 1, (NpzItem[]){{"label", LS_I64, 1, {2}, l}});
    ck_assert(ls_file_map(&f, "one.npz", &e));
    LsFile wide = {"wide.npz", copy, with_zip64(copy, &f, &record, &locator)};
    ck_assert_uint_eq(ls_npz_count(&wide), 1);
    ck_assert_msg(ls_npz_find(&wide, "label", &a, &found, &e) && found, "%s", e.text);
    ck_assert(ls_array_int(&a, 0) == 7 && ls_array_int(&a, 1) == -8);
    for (int k = 0; k < 2; k++) {       /* what is no record, and one beyond the file */
        copy[record] ^= 1;
        put(copy + locator + 8, 8, k == 0 ? record : (uint64_t)1 << 40);
        e = (LsError){0};
        ck_assert(!ls_npz_find(&wide, "label", &a, &found, &e));
        ck_assert_msg(strstr(e.text, "the archive has no directory") != NULL, "%s", e.text);
    }
    ls_file_unmap(&f);
}
END_TEST

START_TEST(a_list_of_names_that_is_too_long_says_so)
{
    LsFile f;
    char names[16];
    e = (LsError){0};
    write_sample("a.npz");
    ck_assert(ls_file_map(&f, "a.npz", &e));
    ls_npz_names(&f, names, sizeof names);
    ck_assert_str_eq(names, "in/x, ...");
    ls_file_unmap(&f);
}
END_TEST

START_TEST(an_archive_takes_no_more_members_than_it_has_room_for)
{
    LsNpz z;
    LsNpzMember room[1];
    e = (LsError){0};
    ck_assert(ls_npz_open(&z, "full.npz", room, 1, &e));
    ck_assert(ls_npz_begin(&z, "a", LS_F32, 0, NULL, &e));
    ls_npz_write(&z, &(float){1}, 4);
    ck_assert(!ls_npz_begin(&z, "b", LS_F32, 0, NULL, &e));
    ck_assert_str_eq(e.text, "full.npz: no room for member b");
    ck_assert(ls_npz_close(&z, &e));
}
END_TEST

START_TEST(damaged_archives_never_crash)
{
    LsFile f;
    LsArray a;
    bool found;
    e = (LsError){0};
    write_sample("a.npz");
    ck_assert(ls_file_map(&f, "a.npz", &e));
    for (size_t n = 0; n < f.size; n++) {
        unsigned char *copy = malloc(f.size);
        memcpy(copy, f.data, f.size);
        LsFile cut = {"cut", copy, n}, flipped = {"flipped", copy, f.size};
        e = (LsError){0};
        ck_assert(!ls_npz_find(&cut, "label", &a, &found, &e));
        ck_assert_int_eq(e.code, LS_EXIT_DATA);
        for (int bit = 0; bit < 8; bit++) {
            e = (LsError){0};
            copy[n] ^= (unsigned char)(1 << bit);
            if (ls_npz_find(&flipped, "label", &a, &found, &e) && found)
                ck_assert(ls_array_int(&a, 0) == 7 && ls_array_int(&a, 1) == -8);
            copy[n] ^= (unsigned char)(1 << bit);
        }
        free(copy);
    }
    ls_file_unmap(&f);
}
END_TEST

int main(void)
{
    const TTest *test[] = {every_element_type_is_converted,
                           reals_of_16_bits_are_widened,
                           scalars_and_empty_arrays_have_a_shape,
                           headers_that_cannot_be_used_are_refused,
                           no_header_is_read_past_its_end,
                           a_header_may_be_long,
                           names_beyond_ascii_are_said_to_be_utf8,
                           a_name_that_fits_no_archive_is_refused,
                           an_archive_gives_back_what_was_written,
                           more_members_than_a_directory_has_room_for_are_none,
                           numpy_reads_our_archives_and_we_read_its,
                           a_directory_of_64_bits_is_read,
                           a_list_of_names_that_is_too_long_says_so,
                           an_archive_takes_no_more_members_than_it_has_room_for,
                           damaged_archives_never_crash};
    return run_in_folder("npy", sizeof test / sizeof test[0], test);
}
