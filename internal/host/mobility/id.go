package mobility

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"

	"scaffold.dev/scaffold/sid"
)

// newSocketID makes 63 bits that nobody can predict. The locator goes in: a copy of this machine may
// have its random generator in the same state, and stands elsewhere.
func newSocketID(l sid.Locator) sid.SocketID {
	var b [40]byte
	rand.Read(b[:32]) // never fails: crypto/rand
	binary.BigEndian.PutUint64(b[32:], uint64(l))
	sum := sha256.Sum256(b[:])
	return sid.NewSocketID(binary.BigEndian.Uint64(sum[:]))
}
