package host

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
)

// A SessionKey names what the daemon keeps of one flow.
type SessionKey = [17]byte

// MaxSession is how many bytes it may keep of each.
const MaxSession = 512

// PutSession keeps the blob, beside the flows, for a daemon that adopts the edge later.
func (e *Edge) PutSession(key SessionKey, blob []byte) error {
	if len(blob) > MaxSession {
		return fmt.Errorf("host edge: keep a session: %d bytes, at most %d", len(blob), MaxSession)
	}
	v := edgeSession{Len: uint16(len(blob))}
	copy(v.Data[:], blob)
	if err := e.maps.Sessions.Put(key, &v); err != nil {
		return fmt.Errorf("host edge: keep a session: %w", err)
	}
	return nil
}

// DeleteSession forgets a blob; one that is not there is forgotten already.
func (e *Edge) DeleteSession(key SessionKey) error {
	if err := e.maps.Sessions.Delete(key); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return fmt.Errorf("host edge: forget a session: %w", err)
	}
	return nil
}

// AllSessions calls f for each blob until it returns false. The blob is f's to keep.
func (e *Edge) AllSessions(f func(key SessionKey, blob []byte) bool) error {
	return scan(e.maps.Sessions, func(key *edgeSessionKey, v *edgeSession) bool {
		n := min(int(v.Len), MaxSession)
		return f(key.Name, append([]byte(nil), v.Data[:n]...))
	})
}
