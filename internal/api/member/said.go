package member

import "regexp"

// Said tells, within one absence of the controller, what a log does not have yet: of several controllers each may have
// its own reason, again and again, and a reason may tell how long ago something was. The zero value has said nothing.
type Said struct{ kinds map[string]bool }

// mostSaid bounds what is remembered.
const mostSaid = 32

var number = regexp.MustCompile(`\b[0-9][0-9a-zµ.:-]*`)

// New reports whether a reason is none of those that were said, but for numbers, and notes it.
func (s *Said) New(reason string) bool {
	kind := number.ReplaceAllString(reason, "#")
	if s.kinds[kind] {
		return false
	}
	if s.kinds == nil || len(s.kinds) >= mostSaid {
		s.kinds = map[string]bool{}
	}
	s.kinds[kind] = true
	return true
}

// Forget begins anew: the absence is over.
func (s *Said) Forget() { s.kinds = nil }
