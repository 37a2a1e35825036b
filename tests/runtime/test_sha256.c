/* tests/runtime/test_sha256.c -- SHA-256 beside the examples of FIPS 180-4, HMAC beside those of
 * RFC 4231. */
#include "runtime/base/sha256.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

static const char *hex(const unsigned char digest[LS_SHA256])
{
    static char text[2 * LS_SHA256 + 1];
    for (int k = 0; k < LS_SHA256; k++)
        snprintf(text + 2 * k, 3, "%02x", digest[k]);
    return text;
}

/* In parts of that many bytes. */
static const char *sum(const void *data, size_t n, size_t part)
{
    unsigned char digest[LS_SHA256];
    LsSha256 h;
    ls_sha256_start(&h);
    for (size_t at = 0; at < n; at += part)
        ls_sha256_add(&h, (const char *)data + at, n - at < part ? n - at : part);
    ls_sha256_end(&h, digest);
    return hex(digest);
}

START_TEST(sums_are_those_of_the_standard)
{
    static const struct { const char *text, *sum;
    } row[] = {
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
        {"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrl"
         "mnopqrsmnopqrstnopqrstu",
         "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"},
    };
    for (size_t k = 0; k < sizeof row / sizeof row[0]; k++)
        for (size_t part = 1; part < 130; part++)
            ck_assert_str_eq(sum(row[k].text, strlen(row[k].text), part), row[k].sum);
    static char million[1000000];
    memset(million, 'a', sizeof million);
    ck_assert_str_eq(sum(million, sizeof million, 777),
                     "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}
END_TEST

START_TEST(keyed_sums_are_those_of_the_rfc)
{
    unsigned char digest[LS_SHA256], key[131], data[50];
    static const struct {
        int byte;
        size_t n;
        const char *text;
        size_t shown;
        const char *sum;
    } row[] = {
        {0x0b, 20, "Hi There", 32,
         "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"},
        {0xaa, 20, NULL, 32,
         "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"}, /* data: dd ... */
        {0x0c, 20, "Test With Truncation", 16, "a3b6167473100ee06e0c796c2955552b"},
        {0xaa, 131, "Test Using Larger Than Block-Size Key - Hash Key First", 32,
         "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"},
        {0xaa, 131,
         "This is a test using a larger than block-size key and a larger than block-size data. The "
         "key needs to be "
         "hashed before being used by the HMAC algorithm.",
         32, "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2"},
    };
    for (size_t k = 0; k < sizeof row / sizeof row[0]; k++) {
        memset(key, row[k].byte, sizeof key);
        memset(data, 0xdd, sizeof data);
        const LsHmac h = ls_hmac_key(key, row[k].n);
        const void *of = row[k].text != NULL ? (const void *)row[k].text : data;
        ls_hmac(&h, of, row[k].text != NULL ? strlen(row[k].text) : sizeof data, digest);
        ck_assert_msg(strncmp(hex(digest), row[k].sum, 2 * row[k].shown) == 0, "%d: %s", (int)k,
                      hex(digest));
    }
    const LsHmac jefe = ls_hmac_key("Jefe", 4);
    for (int twice = 0; twice < 2; twice++) {
        ls_hmac(&jefe, "what do ya want for nothing?", 28, digest);
        ck_assert_str_eq(hex(digest),
                         "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    }
}
END_TEST

START_TEST(secrets_differ_by_any_bit)
{
    unsigned char a[LS_SHA256] = {1, 2, 3}, b[LS_SHA256] = {1, 2, 3};
    ck_assert(ls_same_secret(a, b, sizeof a));
    for (int bit = 0; bit < 8 * LS_SHA256; bit++) {
        b[bit / 8] ^= (unsigned char)(1 << bit % 8);
        ck_assert(!ls_same_secret(a, b, sizeof a));
        b[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
}
END_TEST

int main(void)
{
    const TTest *test[] = {sums_are_those_of_the_standard, keyed_sums_are_those_of_the_rfc,
                           secrets_differ_by_any_bit};
    TCase *tc = tcase_create("sha256");
    add_tests(tc, sizeof test / sizeof test[0], test);
    return run_tests("sha256", tc);
}
