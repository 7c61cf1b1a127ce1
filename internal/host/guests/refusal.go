package guests

import "fmt"

// A Kind is why a guest was refused, as far as callers tell one from another.
type Kind int

// The kinds.
const (
	Invalid Kind = iota // no such thing can be a guest
	Missing             // there is no such guest, or namespace
	Taken               // the name or the namespace is another guest's
	Denied              // hostd may not
	Unready             // not as things stand now
)

// A Refusal is the error of who asks for what cannot be.
type Refusal struct {
	Kind Kind
	err  error
}

func (r *Refusal) Error() string { return r.err.Error() }

// Unwrap is what was in the way.
func (r *Refusal) Unwrap() error { return r.err }

func refused(k Kind, format string, args ...any) error {
	return &Refusal{k, fmt.Errorf(format, args...)}
}
