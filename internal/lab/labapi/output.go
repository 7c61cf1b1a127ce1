package labapi

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// bounded keeps what is written until it is too much; then it calls full, once, and takes the rest without
// keeping it.
type bounded struct {
	kept bytes.Buffer // not embedded: its ReadFrom would go past Write
	over bool
	full func()
}

// Write never fails: an error would hide why the command ends.
func (b *bounded) Write(p []byte) (int, error) {
	if !b.over && b.kept.Len()+len(p) > maxOutput {
		b.over = true
		b.full()
	}
	if !b.over {
		b.kept.Write(p)
	}
	return len(p), nil
}

// valid makes text of bytes.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// A textWriter sends what is written as text at once, except for the beginning of a character that is to follow.
type textWriter struct {
	rest []byte
	send func(text string)
}

// Write takes any bytes.
func (t *textWriter) Write(p []byte) (int, error) {
	all := append(t.rest, p...)
	cut := len(all) - partial(all)
	t.rest = append([]byte(nil), all[cut:]...)
	if cut > 0 {
		t.send(valid(string(all[:cut])))
	}
	return len(p), nil
}

// end sends what no character followed.
func (t *textWriter) end() {
	if len(t.rest) > 0 {
		t.send(valid(string(t.rest)))
	}
}

// partial is how many bytes at the end are the beginning of a character.
func partial(b []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		if tail := b[len(b)-n:]; utf8.RuneStart(tail[0]) {
			if utf8.FullRune(tail) {
				return 0
			}
			return n
		}
	}
	return 0
}
