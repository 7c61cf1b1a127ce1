package sid

import (
	"crypto/sha256"
	"encoding/binary"
)

// Certified is the suffix of a self-certifying service: the first 64 bits of the SHA-256 of its public
// key, the top one cleared, docs/protocol.md §5.6.
func Certified(key []byte) Suffix {
	sum := sha256.Sum256(key)
	return Suffix(binary.BigEndian.Uint64(sum[:]) &^ socketBit)
}
