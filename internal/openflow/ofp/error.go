package ofp

import "fmt"

// Error is a peer's refusal. It is an error as it stands.
type Error struct {
	Kind ErrorKind
	Code uint16 // with ErrorExperimenter: the experimenter's own number
	// Experimenter is set with ErrorExperimenter only.
	Experimenter uint32
	// Data is of what was refused as much as the peer quotes, at least 64 bytes or all of it; of a
	// HELLO it is text.
	Data []byte
}

// Type implements Body.
func (Error) Type(Version) Type { return TypeError }

// layout turns the bundle errors of the extension to 1.3 into those of 1.5: one refusal, one name.
func (m *Error) layout(c *codec) {
	wire := *m
	if c.writing && c.v == V13 && m.Kind == ErrorBundleFailed && int(m.Code) < len(bundleCodes) {
		wire.Kind, wire.Code, wire.Experimenter = ErrorExperimenter, onfBundleError+m.Code, onf
	}
	u16(c, &wire.Kind)
	u16(c, &wire.Code)
	if wire.Kind == ErrorExperimenter {
		u32(c, &wire.Experimenter)
	}
	c.raw(&wire.Data)
	if c.writing {
		return
	}
	code := int(wire.Code) - onfBundleError
	if c.v == V13 && wire.Experimenter == onf && code >= 0 && code < len(bundleCodes) {
		wire.Kind, wire.Code, wire.Experimenter = ErrorBundleFailed, uint16(code), 0
	}
	*m = wire
}

// Refused is the header of the message that was refused, if it is quoted.
func (m Error) Refused() (Header, bool) {
	if m.Kind == ErrorHelloFailed {
		return Header{}, false
	}
	h, err := ParseHeader(m.Data)
	return h, err == nil
}

// Is reports whether target is the same refusal, whatever it was of: for errors.Is.
func (m Error) Is(target error) bool {
	t, ok := target.(Error)
	return ok && t.Kind == m.Kind && t.Code == m.Code && t.Experimenter == m.Experimenter
}

// Error names the refusal as the specification does, and what was refused.
func (m Error) Error() string {
	what := m.Name()
	if h, ok := m.Refused(); ok {
		return fmt.Sprintf("switch refuses %v (xid %d): %s", h.Type, h.XID, what)
	}
	if m.Kind == ErrorHelloFailed && len(m.Data) > 0 {
		return fmt.Sprintf("switch refuses: %s: %.80q", what, m.Data)
	}
	return "switch refuses: " + what
}

// Name is the specification's name of kind and code, as OFPFMFC_TABLE_FULL.
func (m Error) Name() string {
	if m.Kind == ErrorExperimenter {
		return fmt.Sprintf("experimenter %#x, error %d", m.Experimenter, m.Code)
	}
	k, ok := errorKinds[m.Kind]
	if !ok {
		return fmt.Sprintf("error type %d, code %d", uint16(m.Kind), m.Code)
	}
	if int(m.Code) >= len(k.codes) {
		return fmt.Sprintf("%v, code %d", m.Kind, m.Code)
	}
	return k.prefix + "_" + k.codes[m.Code]
}

func (k ErrorKind) String() string {
	if n, ok := errorKinds[k]; ok {
		return n.name
	}
	return fmt.Sprintf("error type %d", uint16(k))
}

// Refusal is the Error of that name, for errors.Is; it panics on a name that does not exist.
func Refusal(name string) Error {
	for kind, k := range errorKinds {
		for code, n := range k.codes {
			if k.prefix+"_"+n == name {
				return Error{Kind: kind, Code: uint16(code)}
			}
		}
	}
	panic("ofp: no error is called " + name)
}
