package seal

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"encoding/binary"
	"fmt"

	"scaffold.dev/scaffold/internal/boost/frame"
)

// A Secret is what the two ends of a trunk share, and nobody else.
type Secret [sha256.Size]byte

// label is registered nowhere (RFC 5705 §4): it begins with EXPERIMENTAL for that. Its number is that of the frames' format.
const label = "EXPERIMENTAL scaffold boost 1"

// Export is the secret of a trunk's control connection, whose handshake is over.
func Export(control tls.ConnectionState) (s Secret, err error) {
	if control.Version != tls.VersionTLS13 {
		return s, fmt.Errorf("the control connection of a trunk speaks %s: TLS 1.3 is needed", tls.VersionName(control.Version))
	}
	b, err := control.ExportKeyingMaterial(label, nil, len(s))
	if err != nil {
		return s, fmt.Errorf("derive the keys of a trunk: %w", err)
	}
	copy(s[:], b)
	return s, nil
}

// A Direction is who sends. The two directions of a connection have keys of their own: what is sent back to its sender
// does not open.
type Direction byte

// Directions, by who opened the data connection.
const (
	FromDialer Direction = 'd'
	ToDialer   Direction = 'a'
)

// derive is a secret for one purpose.
func (s Secret) derive(purpose string, connection uint64, d Direction) (out Secret) {
	info := binary.BigEndian.AppendUint64([]byte(purpose), connection)
	b, err := hkdf.Expand(sha256.New, s[:], string(append(info, byte(d))), len(out))
	if err != nil {
		panic(fmt.Sprintf("seal: %v", err)) // lengths are constant
	}
	copy(out[:], b)
	return out
}

// MAC proves to the other end of the trunk that who says HELLO on a data connection has the trunk's secret. It covers what
// the HELLO says. The two directions have keys of their own: whoever sends the dialer's HELLO back to it proves nothing.
func (s Secret) MAC(connection uint64, d Direction, hello []byte) (mac [frame.MACLen]byte) {
	key := s.derive("hello", connection, d)
	h := hmac.New(sha256.New, key[:])
	h.Write(hello)
	copy(mac[:], h.Sum(nil))
	return mac
}

// Verify says whether mac is that of hello. It takes as long for a wrong one as for the right one.
func (s Secret) Verify(connection uint64, d Direction, hello, mac []byte) bool {
	want := s.MAC(connection, d, hello)
	return hmac.Equal(want[:], mac)
}
