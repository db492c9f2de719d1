/* The block cipher of FIPS 197 by four tables of 1 KiB a direction, which join SubBytes, ShiftRows
 * and MixColumns of a column. The tables are indexed by secrets: this is code to measure, as it was
 * common around 2007, and not for keys that matter. */
#include "aes_plain.h"

static aes_u8 sbox[256];
static aes_u8 inverse_sbox[256];
static aes_u32 forward[4][256];
static aes_u32 backward[4][256];

/* Multiplication in GF(2^8) modulo x^8 + x^4 + x^3 + x + 1 (FIPS 197, 4.2). */
static aes_u8 multiply(aes_u8 a, aes_u8 b)
{
    aes_u8 product = 0;

    for (; b; b >>= 1) {
        if (b & 1)
            product ^= a;
        a = (aes_u8)((a << 1) ^ ((a & 0x80) ? 0x1b : 0));
    }
    return product;
}

static aes_u8 rotate_left(aes_u8 value, int bits)
{
    return (aes_u8)((value << bits) | (value >> (8 - bits)));
}

static aes_u32 rotate_right(aes_u32 value, int bits)
{
    return (value >> bits) | (value << (32 - bits));
}

/* The S-box is the affine map of FIPS 197, 5.1.1, of each inverse; 3 generates the field, and 0xf6
 * is its inverse, so p and q run through all pairs of inverses. */
static void prepare_sboxes(void)
{
    aes_u8 p = 1, q = 1;

    do {
        p = multiply(p, 3);
        q = multiply(q, 0xf6);
        sbox[p] = (aes_u8)(q ^ rotate_left(q, 1) ^ rotate_left(q, 2) ^ rotate_left(q, 3) ^
                           rotate_left(q, 4) ^ 0x63);
    } while (p != 1);
    sbox[0] = 0x63;
    for (int i = 0; i < 256; i++)
        inverse_sbox[sbox[i]] = (aes_u8)i;
}

void aes_plain_prepare(void)
{
    prepare_sboxes();
    for (int i = 0; i < 256; i++) {
        aes_u8 s = sbox[i], v = inverse_sbox[i];
        aes_u32 there = (aes_u32)multiply(s, 2) << 24 | (aes_u32)s << 16 | (aes_u32)s << 8 |
                        multiply(s, 3);
        aes_u32 back = (aes_u32)multiply(v, 14) << 24 | (aes_u32)multiply(v, 9) << 16 |
                       (aes_u32)multiply(v, 13) << 8 | multiply(v, 11);

        forward[0][i] = there;
        backward[0][i] = back;
        for (int t = 1; t < 4; t++) {
            forward[t][i] = rotate_right(there, 8 * t);
            backward[t][i] = rotate_right(back, 8 * t);
        }
    }
}

static aes_u32 load(const aes_u8 *bytes)
{
    return (aes_u32)bytes[0] << 24 | (aes_u32)bytes[1] << 16 | (aes_u32)bytes[2] << 8 | bytes[3];
}

static void store(aes_u8 *bytes, aes_u32 word)
{
    bytes[0] = (aes_u8)(word >> 24);
    bytes[1] = (aes_u8)(word >> 16);
    bytes[2] = (aes_u8)(word >> 8);
    bytes[3] = (aes_u8)word;
}

static aes_u32 substitute(const aes_u8 *box, aes_u32 a, aes_u32 b, aes_u32 c, aes_u32 d)
{
    return (aes_u32)box[a >> 24] << 24 | (aes_u32)box[b >> 16 & 255] << 16 |
           (aes_u32)box[c >> 8 & 255] << 8 | box[d & 255];
}

static aes_u32 unmix(aes_u32 word)
{
    return backward[0][sbox[word >> 24]] ^ backward[1][sbox[word >> 16 & 255]] ^
           backward[2][sbox[word >> 8 & 255]] ^ backward[3][sbox[word & 255]];
}

void aes_plain_expand(struct aes_plain_key *key, const aes_u8 *bytes, aes_size byte_count)
{
    aes_u32 words = (aes_u32)byte_count / 4;
    aes_u32 total, i;
    aes_u8 constant = 1;

    key->rounds = words + 6;
    total = 4 * (key->rounds + 1);
    for (i = 0; i < words; i++)
        key->encrypt[i] = load(bytes + 4 * i);
    for (; i < total; i++) {
        aes_u32 word = key->encrypt[i - 1];

        if (i % words == 0) {
            word = rotate_right(word, 24);
            word = substitute(sbox, word, word, word, word) ^ (aes_u32)constant << 24;
            constant = multiply(constant, 2);
        } else if (words > 6 && i % words == 4) {
            word = substitute(sbox, word, word, word, word);
        }
        key->encrypt[i] = key->encrypt[i - words] ^ word;
    }
    /* Equivalent inverse cipher, FIPS 197, 5.3.5. */
    for (i = 0; i < total; i++) {
        aes_u32 round = i / 4;
        aes_u32 word = key->encrypt[4 * (key->rounds - round) + i % 4];

        key->decrypt[i] = (round == 0 || round == key->rounds) ? word : unmix(word);
    }
}

#define COLUMN(table, a, b, c, d, k)                                                       \
    (table[0][(a) >> 24] ^ table[1][(b) >> 16 & 255] ^ table[2][(c) >> 8 & 255] ^          \
     table[3][(d)&255] ^ (k))

void aes_plain_encrypt(const struct aes_plain_key *key, const aes_u8 *in, aes_u8 *out)
{
    const aes_u32 *k = key->encrypt;
    aes_u32 a = load(in) ^ k[0], b = load(in + 4) ^ k[1];
    aes_u32 c = load(in + 8) ^ k[2], d = load(in + 12) ^ k[3];

    for (aes_u32 round = 1; round < key->rounds; round++) {
        aes_u32 e, f, g, h;

        k += 4;
        e = COLUMN(forward, a, b, c, d, k[0]);
        f = COLUMN(forward, b, c, d, a, k[1]);
        g = COLUMN(forward, c, d, a, b, k[2]);
        h = COLUMN(forward, d, a, b, c, k[3]);
        a = e, b = f, c = g, d = h;
    }
    k += 4;
    store(out, substitute(sbox, a, b, c, d) ^ k[0]);
    store(out + 4, substitute(sbox, b, c, d, a) ^ k[1]);
    store(out + 8, substitute(sbox, c, d, a, b) ^ k[2]);
    store(out + 12, substitute(sbox, d, a, b, c) ^ k[3]);
}

void aes_plain_decrypt(const struct aes_plain_key *key, const aes_u8 *in, aes_u8 *out)
{
    const aes_u32 *k = key->decrypt;
    aes_u32 a = load(in) ^ k[0], b = load(in + 4) ^ k[1];
    aes_u32 c = load(in + 8) ^ k[2], d = load(in + 12) ^ k[3];

    for (aes_u32 round = 1; round < key->rounds; round++) {
        aes_u32 e, f, g, h;

        k += 4;
        e = COLUMN(backward, a, d, c, b, k[0]);
        f = COLUMN(backward, b, a, d, c, k[1]);
        g = COLUMN(backward, c, b, a, d, k[2]);
        h = COLUMN(backward, d, c, b, a, k[3]);
        a = e, b = f, c = g, d = h;
    }
    k += 4;
    store(out, substitute(inverse_sbox, a, d, c, b) ^ k[0]);
    store(out + 4, substitute(inverse_sbox, b, a, d, c) ^ k[1]);
    store(out + 8, substitute(inverse_sbox, c, b, a, d) ^ k[2]);
    store(out + 12, substitute(inverse_sbox, d, c, b, a) ^ k[3]);
}
