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

// PutSessions is PutSession of many at once.
func (e *Edge) PutSessions(all map[SessionKey][]byte) error {
	keys, values := make([]edgeSessionKey, 0, len(all)), make([]edgeSession, 0, len(all))
	for key, blob := range all {
		if len(blob) > MaxSession {
			return fmt.Errorf("host edge: keep a session: %d bytes, at most %d", len(blob), MaxSession)
		}
		keys, values = append(keys, edgeSessionKey{Name: key}), append(values, edgeSession{Len: uint16(len(blob))})
		copy(values[len(values)-1].Data[:], blob)
	}
	for start := 0; start < len(keys); start += batch {
		end := min(start+batch, len(keys))
		if _, err := e.maps.Sessions.BatchUpdate(keys[start:end], values[start:end], nil); err != nil {
			return fmt.Errorf("host edge: keep %d sessions: %w", len(all), err)
		}
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
