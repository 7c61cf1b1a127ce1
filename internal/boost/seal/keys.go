package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"fmt"
)

// A key protects the frames of one connection and direction, in their order.
type key struct {
	secret Secret // the next key follows from it
	aead   cipher.AEAD
	nonce  [12]byte // the frame's number under this key, in its last 8 bytes
	frames uint64
	blocks uint64 // of 16 bytes, under this key
}

// rekeyAfter is how many blocks one key protects, 64 GiB. AES-GCM keeps an attacker's advantage below 2^-57, as RFC 8446
// §5.5 asks, up to 2^36 blocks; one data connection of 100 Gbit/s has sent as many after 88 s. Both ends count, so
// nothing is sent when the key changes.
const rekeyAfter = 1 << 32

func newKey(secret Secret) *key {
	k := &key{secret: secret}
	k.set()
	return k
}

func (k *key) set() {
	block, err := aes.NewCipher(k.secret[:16])
	if err == nil {
		k.aead, err = cipher.NewGCM(block)
	}
	if err != nil {
		panic(fmt.Sprintf("seal: %v", err)) // the key's length is constant
	}
	k.frames, k.blocks = 0, 0
}

// next is the nonce of a frame with so many bytes, under the key that is due.
func (k *key) next(bytes int) []byte {
	if k.blocks > rekeyAfter {
		k.secret = k.secret.derive("next", 0, 0)
		k.set()
	}
	binary.BigEndian.PutUint64(k.nonce[4:], k.frames)
	k.frames++
	k.blocks += uint64(bytes+15)/16 + 1
	return k.nonce[:]
}
