/* tests/runtime/test_augment.c -- what is drawn for samples, windows of pictures in every layout
 * and type against one pixel after the other, and mixtures. tests/python/test_augment.py compares
 * whole batches with NumPy. */
#include "tests/support/npz_util.h"
#include "runtime/data/batch_loader.h"

#include <math.h>
#include <string.h>

enum {
    BATCH = 2,
    CHANNELS = 3,
    HIGH = 5,
    WIDE = 7,
    FROM_HIGH = 9,
    FROM_WIDE = 8,
    SAMPLES = 6,
    PIXELS = CHANNELS * HIGH * WIDE,
    CLASSES = 4
};

static LsInput input[2];
static LsProgram p;
static LsDataset d;
static LsAugmenter a;
static LsError e;
static unsigned char picture[SAMPLES * CHANNELS * FROM_HIGH * FROM_WIDE];
static int64_t label[SAMPLES];

static LsAugment how_of(const char *text)
{
    LsAugment how;
    e = (LsError){0};
    ck_assert_msg(ls_augment_parse(&how, text, &e), "%s", e.text);
    return how;
}

/* A program whose target has probabilities, and data with larger pictures and labels. */
static void open_all(bool channels_last, int real_bytes, const char *how, int rooms)
{
    input[0] = (LsInput){.t = {.name = "x",
                               .channels_last = channels_last,
                               .rank = 4,
                               .dim = {BATCH, CHANNELS, HIGH, WIDE},
                               .at = {LS_AT_INPUT, 0}}};
    input[1] = (LsInput){
        .t = {.name = "label", .rank = 2, .dim = {BATCH, CLASSES}, .at = {LS_AT_INPUT, 1}},
        .is_label = true};
    p = (LsProgram){.about.model = "m.onnx",
                    .real_bytes = real_bytes,
                    .division.samples = BATCH,
                    .input = input,
                    .ninput = 2,
                    .target = {.classes = CLASSES, .class_axis = 1, .soft = true}};
    for (size_t k = 0; k < sizeof picture; k++)
        picture[k] = (unsigned char)(k * 37 % 251);
    for (int k = 0; k < SAMPLES; k++)
        label[k] = k % CLASSES;
    write_npz("a.npz", 2,
              (NpzItem[]){{"x", LS_U8, 4, {SAMPLES, CHANNELS, FROM_HIGH, FROM_WIDE}, picture},
                          {"label", LS_I64, 1, {SAMPLES}, label}});
    e = (LsError){0};
    ck_assert_msg(ls_dataset_open(&d, &p, &(LsDataOptions){.data = "a.npz"}, &e), "%s", e.text);
    const LsAugment parsed = how_of(how);
    ck_assert_msg(ls_augmenter_open(&a, &parsed, &d, 11, rooms, &e), "%s", e.text);
}

static void close_all(void)
{
    ls_augmenter_close(&a);
    ls_dataset_close(&d);
}

/* A pixel of a sample in a batch, in the order of the memory. */
static double pixel(const void *at, int c, int y, int x)
{
    const int64_t i =
        input[0].t.channels_last ? (y * WIDE + x) * CHANNELS + c : (c * HIGH + y) * WIDE + x;
    return p.real_bytes == 8 ? ((const double *)at)[i] : (double)((const float *)at)[i];
}

/* The same of the data; outside of the picture the mirror image, or 0. */
static double stored(int sample, int c, int64_t y, int64_t x, bool reflect)
{
    if (reflect) {
        y = y < 0 ? -y : y >= FROM_HIGH ? 2 * FROM_HIGH - 2 - y : y;
        x = x < 0 ? -x : x >= FROM_WIDE ? 2 * FROM_WIDE - 2 - x : x;
    }
    if (y < 0 || x < 0 || y >= FROM_HIGH || x >= FROM_WIDE)
        return 0;
    return picture[((sample * CHANNELS + c) * FROM_HIGH + y) * FROM_WIDE + x] / 255.0;
}

/* ---- draws ---- */

START_TEST(chances_and_places_are_as_asked_for)
{
    enum { N = 20000, PAD = 3, ROWS = FROM_HIGH + 2 * PAD - HIGH + 1 };
    const LsAugment how = how_of("flip,vflip=0.2,crop=3");
    const LsPictureSize size = {HIGH, WIDE, FROM_HIGH, FROM_WIDE};
    int flips = 0, vflips = 0, both = 0, place[ROWS] = {0};
    for (int64_t k = 0; k < N; k++) {
        const LsWindow w = ls_window_draw(&how, &size, ls_draw_key(1, k % 7, k));
        flips += w.flip;
        vflips += w.vflip;
        both += w.flip && w.vflip;
        ck_assert(w.top >= -PAD && w.top < ROWS - PAD);
        ck_assert(w.left >= -PAD && w.left + WIDE <= FROM_WIDE + PAD);
        place[w.top + PAD]++;
    }
    ck_assert_int_lt(abs(flips - N / 2), 4 * 71); /* four deviations */
    ck_assert_int_lt(abs(vflips - N / 5), 4 * 57);
    ck_assert_int_lt(abs(both - N / 10), 4 * 43);
    for (int k = 0; k < ROWS; k++)
        ck_assert_int_lt(abs(place[k] - N / ROWS), 4 * 41);
}
END_TEST

START_TEST(windows_of_a_part_of_the_area_lie_within_the_picture)
{
    const LsPictureSize size = {HIGH, WIDE, 100, 150};
    const LsAugment how = how_of("resized-crop=0.1-0.5:0.5-2");
    double least = 1, most = 0, sum = 0;
    for (int64_t k = 0; k < 5000; k++) {
        const LsWindow w = ls_window_draw(&how, &size, ls_draw_key(1, 0, k));
        const double part = (double)(w.high * w.wide) / 15000,
                     shape = (double)w.wide / (double)w.high;
        ck_assert(w.resized && w.top >= 0 && w.left >= 0 && w.top + w.high <= 100
                  && w.left + w.wide <= 150);
        ck_assert(shape > 0.48 && shape < 2.1);
        least = fmin(least, part), most = fmax(most, part), sum += part / 5000;
    }
    ck_assert(least < 0.11 && most > 0.49 && least > 0.09 && most < 0.51);
    ck_assert(fabs(sum - 0.29) < 0.02);
    const LsPictureSize band = {HIGH, WIDE, 10, 400}; /* no try fits: the middle */
    const LsAugment large = how_of("resized-crop=1-1");
    const LsWindow w = ls_window_draw(&large, &band, ls_draw_key(1, 0, 0));
    ck_assert(w.high == 10 && w.wide == 13 && w.top == 0 && w.left == 193);
}
END_TEST

/* Of Beta(alpha, alpha) the mean is 1/2 and the variance 1 / (4 (2 alpha + 1)). */
START_TEST(shares_have_their_distribution_and_sum_to_one)
{
    static const double alpha[] = {0.2, 1, 4};
    enum { N = 20000 };
    for (int k = 0; k < 3; k++) {
        const LsAugment how = {.mixup = alpha[k]};
        double sum = 0, squares = 0;
        char seen[1000] = {0};
        for (int64_t i = 0; i < N; i++) {
            const LsMix m = ls_mix_draw(&how, 5, i / 1000, 1000, i % 1000, HIGH, WIDE);
            ck_assert(m.how == LS_MIX_ALL && m.own >= 0 && m.own <= 1);
            ck_assert(m.own + (1 - m.own) == 1 && (double)m.own + (double)(1 - m.own) == 1);
            sum += m.own;
            squares += ((double)m.own - 0.5) * ((double)m.own - 0.5);
            if (i < 1000) {
                ck_assert(m.other >= 0 && m.other < 1000 && !seen[m.other]);
                seen[m.other] = 1;
            }
        }
        ck_assert(fabs(sum / N - 0.5) < 0.012);
        ck_assert(fabs(squares / N * 4 * (2 * alpha[k] + 1) - 1) < 0.05);
    }
}
END_TEST

START_TEST(boxes_lie_within_the_picture_and_shares_are_their_area)
{
    const LsAugment how = how_of("cutmix=1"), two = how_of("cutmix=1,mixup=1");
    int boxes = 0;
    for (int64_t i = 0; i < 2000; i++) {
        const LsMix m = ls_mix_draw(&how, 5, 0, 2000, i, HIGH, WIDE);
        ck_assert(m.how == LS_MIX_BOX && m.top >= 0 && m.left >= 0 && m.high >= 0 && m.wide >= 0);
        ck_assert(m.top + m.high <= HIGH && m.left + m.wide <= WIDE);
        ck_assert(fabs(m.own - (1 - (double)(m.high * m.wide) / (HIGH * WIDE))) < 1e-7);
        boxes += ls_mix_draw(&two, 5, 0, 2000, i, HIGH, WIDE).how == LS_MIX_BOX;
    }
    ck_assert_int_lt(abs(boxes - 1000), 90);
}
END_TEST

/* ---- windows ---- */

START_TEST(windows_are_read_pixel_by_pixel_in_every_layout)
{
    static const char *const text[] = {"crop", "crop=3", "crop=6:reflect", "crop=4,flip",
                                       "crop=5:reflect,flip,vflip"};
    static double batch[PIXELS];
    for (int k = 0; k < 5 * 4; k++) {
        open_all(k % 2, k % 4 < 2 ? 4 : 8, text[k / 4], 1);
        for (int i = 0; i < SAMPLES * 8; i++) {
            const int sample = i % SAMPLES;
            const LsWindow w =
                ls_window_draw(&a.how, &a.size, ls_draw_key(11, i / SAMPLES, sample));
            ck_assert(ls_augmenter_read(&a, 0, 0, sample, i / SAMPLES, batch, &e));
            for (int at = 0; at < PIXELS; at++) {
                const int c = at / (HIGH * WIDE), y = at / WIDE % HIGH, x = at % WIDE;
                const double want = stored(sample, c, w.top + (w.vflip ? HIGH - 1 - y : y),
                                           w.left + (w.flip ? WIDE - 1 - x : x), w.reflect);
                const double got = pixel(batch, c, y, x);
                ck_assert_msg(fabs(got - want) <= (p.real_bytes == 8 ? 0 : 1e-7),
                              "%s: sample %d: %d %d %d: %g, not %g", text[k / 4], sample, c, y, x,
                              got, want);
            }
        }
        close_all();
    }
}
END_TEST

START_TEST(resized_windows_are_sums_of_triangles)
{
    static double batch[PIXELS];
    for (int k = 0; k < 4; k++) {
        open_all(k % 2, k < 2 ? 4 : 8, "resized-crop=0.3-1:0.7-1.4,flip", 1);
        for (int i = 0; i < SAMPLES * 4; i++) {
            const int s = i % SAMPLES;
            const LsWindow w = ls_window_draw(&a.how, &a.size, ls_draw_key(11, i / SAMPLES, s));
            const double down = (double)w.high / HIGH, across = (double)w.wide / WIDE;
            ck_assert(ls_augmenter_read(&a, 0, 0, s, i / SAMPLES, batch, &e));
            for (int at = 0; at < PIXELS; at++) {
                const int c = at / (HIGH * WIDE), y = at / WIDE % HIGH, x = at % WIDE;
                const double cy = (y + 0.5) * down - 0.5,
                             cx = ((w.flip ? WIDE - 1 - x : x) + 0.5) * across - 0.5;
                double sum = 0, all = 0;
                for (int v = 0; v < w.high; v++)
                    for (int u = 0; u < w.wide; u++) {
                        const double f = fmax(0, 1 - fabs(v - cy) / fmax(down, 1))
                                         * fmax(0, 1 - fabs(u - cx) / fmax(across, 1));
                        sum += f * stored(s, c, w.top + v, w.left + u, false);
                        all += f;
                    }
                ck_assert(fabs(pixel(batch, c, y, x) - sum / all) < 1e-6);
            }
        }
        close_all();
    }
}
END_TEST

START_TEST(without_augmentation_the_middle_is_taken)
{
    static double batch[PIXELS];
    open_all(false, 4, "crop", 1);
    ck_assert(ls_dataset_read(&d, 0, 2, 0, batch, &e));
    for (int at = 0; at < PIXELS; at++) {
        const int c = at / (HIGH * WIDE), y = at / WIDE % HIGH, x = at % WIDE;
        ck_assert(fabs(pixel(batch, c, y, x) - stored(2, c, y + 2, x, false)) < 1e-7);
    }
    close_all();
}
END_TEST

START_TEST(smaller_pictures_are_refused_but_for_what_enlarges_them)
{
    static double batch[PIXELS];
    open_all(false, 4, "resized-crop", 1);
    ls_augmenter_close(&a);
    ls_dataset_close(&d);
    write_npz("a.npz", 2,
              (NpzItem[]){{"x", LS_U8, 4, {SAMPLES, CHANNELS, 4, 6}, picture},
                          {"label", LS_I64, 1, {SAMPLES}, label}});
    ck_assert(ls_dataset_open(&d, &p, &(LsDataOptions){.data = "a.npz"}, &e));
    ck_assert(!ls_dataset_read(&d, 0, 0, 0, batch, &e));
    ck_assert_msg(strstr(e.text, "'x' is 4x6, smaller than the 5x7") != NULL, "%s", e.text);
    LsAugment how = how_of("crop");
    ck_assert(!ls_augmenter_open(&a, &how, &d, 1, 1, &e));
    ck_assert_msg(strstr(e.text, "resized-crop enlarges smaller ones") != NULL, "%s", e.text);
    ls_augmenter_close(&a);
    how = how_of("resized-crop");
    e = (LsError){0};
    ck_assert_msg(ls_augmenter_open(&a, &how, &d, 1, 1, &e), "%s", e.text);
    ck_assert(ls_augmenter_read(&a, 0, 0, 3, 0, batch, &e));
    close_all();
}
END_TEST

/* ---- mixtures ---- */

START_TEST(targets_mix_as_their_pictures_do)
{
    static double own[PIXELS], other[PIXELS], mixed[PIXELS];
    open_all(true, 8, "crop=2,flip,mixup=0.5", 1);
    LsAugmenter plain = a;
    plain.how.mixup = 0;
    for (int s = 0; s < SAMPLES; s++) {
        const LsMix m = ls_mix_draw(&a.how, 11, 4, SAMPLES, s, HIGH, WIDE);
        for (uint32_t k = 0; k < 2; k++) {
            const int n = k == 0 ? PIXELS : CLASSES;
            ck_assert(ls_augmenter_read(&a, 0, k, s, 4, mixed, &e));
            ck_assert(ls_augmenter_read(&plain, 0, k, s, 4, own, &e));
            ck_assert(ls_augmenter_read(&plain, 0, k, m.other, 4, other, &e));
            double sum = 0;
            for (int i = 0; i < n; i++, sum += mixed[i - 1])
                ck_assert(fabs(mixed[i] - (m.own * own[i] + (1 - m.own) * other[i])) < 1e-12);
            ck_assert(k == 0 || sum == 1);
        }
    }
    close_all();
}
END_TEST

START_TEST(samples_are_mixed_with_others)
{
    const LsAugment how = how_of("mixup=1");
    int own = 0, same = 0;
    for (int64_t i = 0; i < 1000; i++) {
        const int64_t other = ls_mix_draw(&how, 5, 0, 1000, i, HIGH, WIDE).other;
        own += other == i;
        same += other == ls_mix_draw(&how, 5, 1, 1000, i, HIGH, WIDE).other;
    }
    ck_assert(own < 10 && same < 10);
}
END_TEST

/* ---- batches ---- */

/* The bytes of some batches of a pass. */
static void fill(char *to, int64_t each, int workers, int64_t first, int64_t end)
{
    LsLoader l;
    ck_assert(ls_loader_open(&l, &p, workers, &e));
    const LsPass pass = {
        .data = &d, .augment = &a, .seed = 11, .shuffle = true, .first = first, .end = end};
    ls_loader_begin(&l, &pass);
    for (int64_t k = first; k < end; k++) {
        const LsBatch *b = ls_loader_next(&l, &e);
        ck_assert_msg(b != NULL, "%s", e.text);
        memcpy(to + (k - first) * each, b->input, (size_t)each);
        ls_loader_release(&l);
    }
    ls_loader_close(&l);
}

START_TEST(batches_have_the_same_bits_for_all_workers_and_starts)
{
    enum { BATCHES = 12, EACH = 960 }; /* of four epochs */
    static char want[BATCHES * EACH], got[BATCHES * EACH];
    open_all(false, 4, "resized-crop,vflip,jitter=0.4/0.4/0.4/0.1,mixup=1,cutmix=1", 4);
    ck_assert_int_eq(ls_ring_bytes(&p), 4 * EACH);
    fill(want, EACH, 0, 0, BATCHES);
    ck_assert_int_ne(memcmp(want, want + 3 * EACH, EACH), 0);
    for (int workers = 1; workers <= 4; workers++)
        for (int64_t first = 0; first < 6; first++) {
            fill(got, EACH, workers, first, BATCHES);
            const size_t bytes = (size_t)((BATCHES - first) * EACH);
            ck_assert_int_eq(memcmp(want + first * EACH, got, bytes), 0);
        }
    close_all();
}
END_TEST

/* Pictures that take workers so long that several are under way at the same time. */
START_TEST(workers_do_not_share_their_scratch_memory)
{
    enum { EDGE = 96, FROM = 110, N = 8, BATCHES = 6, BYTES = BATCH * (3 * EDGE * EDGE * 4) + 64 };
    static unsigned char large[N * 3 * FROM * FROM];
    static char want[BATCHES * BYTES], got[BATCHES * BYTES];
    open_all(false, 4, "crop", 1);
    close_all();
    input[0].t.dim[2] = input[0].t.dim[3] = EDGE;
    for (size_t k = 0; k < sizeof large; k++)
        large[k] = (unsigned char)(k * 37 % 251);
    write_npz("a.npz", 2, (NpzItem[]){{"x", LS_U8, 4, {N, 3, FROM, FROM}, large},
                                      {"label", LS_I64, 1, {N}, (int64_t[N]){1, 2}}});
    const LsAugment how = how_of("resized-crop,jitter=0.4/0.4,mixup=1");
    ck_assert(ls_dataset_open(&d, &p, &(LsDataOptions){.data = "a.npz"}, &e));
    ck_assert(ls_augmenter_open(&a, &how, &d, 1, 4, &e));
    ck_assert_int_eq(ls_ring_bytes(&p), 4 * BYTES);
    fill(want, BYTES, 0, 0, BATCHES);
    for (int k = 0; k < 5; k++) {
        fill(got, BYTES, 4, 0, BATCHES);
        ck_assert_int_eq(memcmp(want, got, sizeof want), 0);
    }
    close_all();
}
END_TEST

/* ---- windows of tokens ---- */

START_TEST(windows_of_tokens_begin_anywhere_below_a_stride)
{
    enum { TOKENS = 4, ALL = 43, STRIDE = 6, EPOCHS = 600 };
    uint16_t token[ALL];
    int32_t ids[TOKENS];
    int64_t next[TOKENS];
    int at[STRIDE] = {0};
    for (int k = 0; k < ALL; k++)
        token[k] = (uint16_t)k;
    write_bytes("t.bin", token, sizeof token);
    for (int k = 0; k < 2; k++)
        input[k] = (LsInput){.t = {.name = k == 0 ? "ids" : "label",
                                   .type = k == 0 ? LS_DT_I32 : LS_DT_I64,
                                   .rank = 2,
                                   .dim = {BATCH, TOKENS},
                                   .at = {LS_AT_INPUT, k}},
                             .is_label = k == 1};
    p = (LsProgram){.about.model = "m.onnx",
                    .real_bytes = 4,
                    .division.samples = BATCH,
                    .input = input,
                    .ninput = 2,
                    .target.classes = ALL};
    e = (LsError){0};
    const LsDataOptions o = {.data = "t.bin", .stride = STRIDE, .random_windows = true};
    ck_assert_msg(ls_dataset_open(&d, &p, &o, &e), "%s", e.text);
    ck_assert_int_eq(d.samples, 6);             /* 7 that stay where they are */
    ck_assert_int_eq(d.moves, STRIDE - 1);
    ck_assert(ls_augmenter_open(&a, NULL, &d, 3, 1, &e));
    for (int64_t epoch = 0; epoch < EPOCHS; epoch++) {
        int moved = -1;
        for (int64_t s = 0; s < d.samples; s++) {
            ck_assert_msg(ls_augmenter_read(&a, 0, 0, s, epoch, ids, &e), "%s", e.text);
            ck_assert_msg(ls_augmenter_read(&a, 0, 1, s, epoch, next, &e), "%s", e.text);
            moved = s == 0 ? ids[0] : moved;
            for (int k = 0; k < TOKENS; k++)
                ck_assert(ids[k] == moved + s * STRIDE + k && next[k] == ids[k] + 1);
        }
        ck_assert(moved >= 0 && moved < STRIDE);
        at[moved]++;
    }
    for (int k = 0; k < STRIDE; k++)
        ck_assert_int_lt(abs(at[k] - EPOCHS / STRIDE), 4 * 9);
    close_all();
}
END_TEST

int main(void)
{
    const TTest *test[] = {
        chances_and_places_are_as_asked_for,
        windows_of_a_part_of_the_area_lie_within_the_picture,
        shares_have_their_distribution_and_sum_to_one,
        boxes_lie_within_the_picture_and_shares_are_their_area,
        windows_are_read_pixel_by_pixel_in_every_layout,
        resized_windows_are_sums_of_triangles,
        without_augmentation_the_middle_is_taken,
        smaller_pictures_are_refused_but_for_what_enlarges_them,
        targets_mix_as_their_pictures_do,
        windows_of_tokens_begin_anywhere_below_a_stride,
        samples_are_mixed_with_others,
        workers_do_not_share_their_scratch_memory,
        batches_have_the_same_bits_for_all_workers_and_starts,
    };
    return run_in_folder("augment", sizeof test / sizeof test[0], test);
}
