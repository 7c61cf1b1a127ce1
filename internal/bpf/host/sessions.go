package host

// A SessionKey names what the daemon keeps of one flow.
type SessionKey = [17]byte

// MaxSession is how many bytes it may keep of each.
const MaxSession = 512

// PutSession keeps the blob, beside the flows, for a daemon that adopts the edge later.
func (e *Edge) PutSession(key SessionKey, blob []byte) error { return errUnsupported }

// DeleteSession forgets a blob; one that is not there is forgotten already.
func (e *Edge) DeleteSession(key SessionKey) error { return errUnsupported }

// AllSessions calls f for each blob until it returns false. The blob is f's to keep.
func (e *Edge) AllSessions(f func(key SessionKey, blob []byte) bool) error { return errUnsupported }
