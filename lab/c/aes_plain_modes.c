/* Modes of operation over aes_plain.c: CBC and counter mode (SP 800-38A), XTS (IEEE 1619), GCM
 * (SP 800-38D). */
#include "aes_plain.h"

static void xor_block(aes_u8 *into, const aes_u8 *other)
{
    aes_u64 a[2], b[2];

    memcpy(a, into, AES_BLOCK);
    memcpy(b, other, AES_BLOCK);
    a[0] ^= b[0];
    a[1] ^= b[1];
    memcpy(into, a, AES_BLOCK);
}

void aes_plain_cbc_encrypt(const struct aes_plain_key *key, const aes_u8 *iv, aes_u8 *data,
                           aes_size byte_count)
{
    for (; byte_count >= AES_BLOCK; byte_count -= AES_BLOCK, data += AES_BLOCK) {
        xor_block(data, iv);
        aes_plain_encrypt(key, data, data);
        iv = data;
    }
}

void aes_plain_cbc_decrypt(const struct aes_plain_key *key, const aes_u8 *iv, aes_u8 *data,
                           aes_size byte_count)
{
    aes_u8 before[AES_BLOCK], here[AES_BLOCK];

    memcpy(before, iv, AES_BLOCK);
    for (; byte_count >= AES_BLOCK; byte_count -= AES_BLOCK, data += AES_BLOCK) {
        memcpy(here, data, AES_BLOCK);
        aes_plain_decrypt(key, data, data);
        xor_block(data, before);
        memcpy(before, here, AES_BLOCK);
    }
}

/* Adds one to the last `width` bytes, big-endian. */
static void count_up(aes_u8 *counter, int width)
{
    for (int i = AES_BLOCK - 1; i >= AES_BLOCK - width; i--)
        if (++counter[i])
            return;
}

static void xor_keystream(const struct aes_plain_key *key, aes_u8 *counter, int width,
                          aes_u8 *data, aes_size byte_count)
{
    aes_u8 stream[AES_BLOCK];

    for (; byte_count >= AES_BLOCK; byte_count -= AES_BLOCK, data += AES_BLOCK) {
        aes_plain_encrypt(key, counter, stream);
        xor_block(data, stream);
        count_up(counter, width);
    }
    if (!byte_count)
        return;
    aes_plain_encrypt(key, counter, stream);
    for (aes_size i = 0; i < byte_count; i++)
        data[i] ^= stream[i];
}

void aes_plain_ctr(const struct aes_plain_key *key, const aes_u8 *counter, aes_u8 *data,
                   aes_size byte_count)
{
    aes_u8 own[AES_BLOCK];

    memcpy(own, counter, AES_BLOCK);
    xor_keystream(key, own, AES_BLOCK, data, byte_count);
}

/* Multiplies the tweak by x; its first byte is the least significant (IEEE 1619, 5.2). */
static void double_tweak(aes_u8 *tweak)
{
    aes_u8 carry = 0;

    for (int i = 0; i < AES_BLOCK; i++) {
        aes_u8 next = tweak[i] >> 7;

        tweak[i] = (aes_u8)(tweak[i] << 1 | carry);
        carry = next;
    }
    if (carry)
        tweak[0] ^= 0x87;
}

typedef void (*one_block)(const struct aes_plain_key *, const aes_u8 *, aes_u8 *);

static void xts_block(one_block cipher, const struct aes_plain_key *key, const aes_u8 *tweak,
                      aes_u8 *data)
{
    xor_block(data, tweak);
    cipher(key, data, data);
    xor_block(data, tweak);
}

static void xts(one_block cipher, int decrypts, const struct aes_plain_key *key,
                const struct aes_plain_key *tweak_key, const aes_u8 *tweak, aes_u8 *data,
                aes_size byte_count)
{
    aes_size rest = byte_count % AES_BLOCK;
    aes_size blocks = byte_count / AES_BLOCK - (rest ? 1 : 0);
    aes_u8 here[AES_BLOCK], next[AES_BLOCK];

    aes_plain_encrypt(tweak_key, tweak, here);
    for (; blocks; blocks--, data += AES_BLOCK) {
        xts_block(cipher, key, here, data);
        double_tweak(here);
    }
    if (!rest)
        return;
    /* Ciphertext stealing: the last whole block lends its end to the short one. When decrypting,
     * the two tweaks change places. */
    memcpy(next, here, AES_BLOCK);
    double_tweak(next);
    xts_block(cipher, key, decrypts ? next : here, data);
    for (aes_size i = 0; i < rest; i++) {
        aes_u8 lent = data[i];

        data[i] = data[AES_BLOCK + i];
        data[AES_BLOCK + i] = lent;
    }
    xts_block(cipher, key, decrypts ? here : next, data);
}

void aes_plain_xts_encrypt(const struct aes_plain_key *key, const struct aes_plain_key *tweak_key,
                           const aes_u8 *tweak, aes_u8 *data, aes_size byte_count)
{
    xts(aes_plain_encrypt, 0, key, tweak_key, tweak, data, byte_count);
}

void aes_plain_xts_decrypt(const struct aes_plain_key *key, const struct aes_plain_key *tweak_key,
                           const aes_u8 *tweak, aes_u8 *data, aes_size byte_count)
{
    xts(aes_plain_decrypt, 1, key, tweak_key, tweak, data, byte_count);
}

static aes_u64 load_64(const aes_u8 *bytes)
{
    aes_u64 word = 0;

    for (int i = 0; i < 8; i++)
        word = word << 8 | bytes[i];
    return word;
}

static void store_64(aes_u8 *bytes, aes_u64 word)
{
    for (int i = 7; i >= 0; i--, word >>= 8)
        bytes[i] = (aes_u8)word;
}

void aes_plain_ghash_prepare(struct aes_plain_ghash *ghash, const struct aes_plain_key *key)
{
    aes_u8 subkey[AES_BLOCK] = {0};
    aes_u64 high, low;

    aes_plain_encrypt(key, subkey, subkey);
    high = load_64(subkey);
    low = load_64(subkey + 8);
    ghash->high[0] = ghash->low[0] = 0;
    /* Index 8 is the subkey itself: the first bit of a block is the highest power's. */
    for (int i = 8; i; i >>= 1) {
        aes_u64 carry = (low & 1) ? 0xe100000000000000ull : 0;

        ghash->high[i] = high;
        ghash->low[i] = low;
        low = high << 63 | low >> 1;
        high = high >> 1 ^ carry;
    }
    for (int i = 2; i < 16; i <<= 1)
        for (int j = 1; j < i; j++) {
            ghash->high[i + j] = ghash->high[i] ^ ghash->high[j];
            ghash->low[i + j] = ghash->low[i] ^ ghash->low[j];
        }
}

/* What the four bits that are shifted out come to, modulo x^128 + x^7 + x^2 + x + 1. */
static const aes_u64 reduced[16] = {
    0x0000, 0x1c20, 0x3840, 0x2460, 0x7080, 0x6ca0, 0x48c0, 0x54e0,
    0xe100, 0xfd20, 0xd940, 0xc560, 0x9180, 0x8da0, 0xa9c0, 0xb5e0,
};

static void ghash_multiply(const struct aes_plain_ghash *ghash, aes_u8 *hash)
{
    aes_u64 high = 0, low = 0;

    for (int i = 15; i >= 0; i--)
        for (int half = 0; half < 2; half++) {
            aes_u8 nibble = half ? hash[i] >> 4 : hash[i] & 15;
            aes_u64 out = low & 15;

            low = high << 60 | low >> 4;
            high = high >> 4 ^ reduced[out] << 48;
            high ^= ghash->high[nibble];
            low ^= ghash->low[nibble];
        }
    store_64(hash, high);
    store_64(hash + 8, low);
}

static void ghash_update(const struct aes_plain_ghash *ghash, aes_u8 *hash, const aes_u8 *data,
                         aes_size byte_count)
{
    for (; byte_count >= AES_BLOCK; byte_count -= AES_BLOCK, data += AES_BLOCK) {
        xor_block(hash, data);
        ghash_multiply(ghash, hash);
    }
    if (!byte_count)
        return;
    for (aes_size i = 0; i < byte_count; i++)
        hash[i] ^= data[i];
    ghash_multiply(ghash, hash);
}

static void gcm_tag(const struct aes_plain_key *key, const struct aes_plain_ghash *ghash,
                    const aes_u8 *iv, const aes_u8 *aad, aes_size aad_count, const aes_u8 *data,
                    aes_size byte_count, aes_u8 *tag)
{
    aes_u8 hash[AES_BLOCK] = {0}, lengths[AES_BLOCK], first[AES_BLOCK] = {0};

    ghash_update(ghash, hash, aad, aad_count);
    ghash_update(ghash, hash, data, byte_count);
    store_64(lengths, (aes_u64)aad_count * 8);
    store_64(lengths + 8, (aes_u64)byte_count * 8);
    ghash_update(ghash, hash, lengths, AES_BLOCK);
    memcpy(first, iv, 12);
    first[15] = 1;
    aes_plain_encrypt(key, first, tag);
    xor_block(tag, hash);
}

static void gcm_keystream(const struct aes_plain_key *key, const aes_u8 *iv, aes_u8 *data,
                          aes_size byte_count)
{
    aes_u8 counter[AES_BLOCK] = {0};

    memcpy(counter, iv, 12);
    counter[15] = 2;
    xor_keystream(key, counter, 4, data, byte_count);
}

void aes_plain_gcm_encrypt(const struct aes_plain_key *key, const struct aes_plain_ghash *ghash,
                           const aes_u8 *iv, const aes_u8 *aad, aes_size aad_count, aes_u8 *data,
                           aes_size byte_count, aes_u8 *tag)
{
    gcm_keystream(key, iv, data, byte_count);
    gcm_tag(key, ghash, iv, aad, aad_count, data, byte_count, tag);
}

int aes_plain_gcm_decrypt(const struct aes_plain_key *key, const struct aes_plain_ghash *ghash,
                          const aes_u8 *iv, const aes_u8 *aad, aes_size aad_count, aes_u8 *data,
                          aes_size byte_count, const aes_u8 *tag)
{
    aes_u8 expected[AES_BLOCK], difference = 0;

    gcm_tag(key, ghash, iv, aad, aad_count, data, byte_count, expected);
    for (int i = 0; i < AES_BLOCK; i++)
        difference |= expected[i] ^ tag[i];
    if (difference)
        return -1;
    gcm_keystream(key, iv, data, byte_count);
    return 0;
}
