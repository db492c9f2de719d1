/* AES in plain C (FIPS 197), the same code for a user program and for a kernel module. */
#ifndef AES_PLAIN_H
#define AES_PLAIN_H

#ifdef __KERNEL__
#include <linux/string.h>
#include <linux/types.h>
typedef u8 aes_u8;
typedef u32 aes_u32;
typedef u64 aes_u64;
typedef size_t aes_size;
#else
#include <stddef.h>
#include <stdint.h>
#include <string.h>
typedef uint8_t aes_u8;
typedef uint32_t aes_u32;
typedef uint64_t aes_u64;
typedef size_t aes_size;
#endif

#define AES_BLOCK 16

/* Round keys of both directions; those for decryption are of the equivalent inverse cipher. */
struct aes_plain_key {
    aes_u32 encrypt[60];
    aes_u32 decrypt[60];
    aes_u32 rounds;
};

/* Fills the tables. Call it once, before anything else, from one thread. */
void aes_plain_prepare(void);

/* Expands a key of 16 or 32 bytes. */
void aes_plain_expand(struct aes_plain_key *key, const aes_u8 *bytes, aes_size byte_count);

/* One block; `in` and `out` may be the same. */
void aes_plain_encrypt(const struct aes_plain_key *key, const aes_u8 *in, aes_u8 *out);
void aes_plain_decrypt(const struct aes_plain_key *key, const aes_u8 *in, aes_u8 *out);

/* In place. CBC (SP 800-38A, 6.2) takes whole blocks only. */
void aes_plain_cbc_encrypt(const struct aes_plain_key *key, const aes_u8 *iv, aes_u8 *data,
                           aes_size byte_count);
void aes_plain_cbc_decrypt(const struct aes_plain_key *key, const aes_u8 *iv, aes_u8 *data,
                           aes_size byte_count);

/* The loop of table A: a turn encrypts the buffer in calls of `call_bytes`, all under one IV, and
 * decrypts it again. */
void aes_plain_loop(const struct aes_plain_key *key, const aes_u8 *iv, aes_u8 *buffer,
                    aes_size byte_count, aes_size call_bytes, aes_u64 turns);

/* Counter mode (SP 800-38A, 6.5) with a counter of 128 bits, big-endian; both directions. */
void aes_plain_ctr(const struct aes_plain_key *key, const aes_u8 *counter, aes_u8 *data,
                   aes_size byte_count);

/* XTS (IEEE 1619), with ciphertext stealing; at least one block. */
void aes_plain_xts_encrypt(const struct aes_plain_key *key, const struct aes_plain_key *tweak_key,
                           const aes_u8 *tweak, aes_u8 *data, aes_size byte_count);
void aes_plain_xts_decrypt(const struct aes_plain_key *key, const struct aes_plain_key *tweak_key,
                           const aes_u8 *tweak, aes_u8 *data, aes_size byte_count);

/* GHASH (SP 800-38D, 6.4) by tables of four bits. */
struct aes_plain_ghash {
    aes_u64 high[16];
    aes_u64 low[16];
};

void aes_plain_ghash_prepare(struct aes_plain_ghash *ghash, const struct aes_plain_key *key);

/* GCM with an IV of 12 bytes. Decryption tells 0 when the tag is right, and otherwise leaves the
 * data as it was. */
void aes_plain_gcm_encrypt(const struct aes_plain_key *key, const struct aes_plain_ghash *ghash,
                           const aes_u8 *iv, const aes_u8 *aad, aes_size aad_count, aes_u8 *data,
                           aes_size byte_count, aes_u8 *tag);
int aes_plain_gcm_decrypt(const struct aes_plain_key *key, const struct aes_plain_ghash *ghash,
                          const aes_u8 *iv, const aes_u8 *aad, aes_size aad_count, aes_u8 *data,
                          aes_size byte_count, const aes_u8 *tag);

#endif
