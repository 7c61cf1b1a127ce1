package labapi

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	_ "scaffold.dev/scaffold/internal/tests/seed" // property tests draw the same each time in make test
)

func TestTextIsTheSameHoweverItIsCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SliceOf(rapid.SampledFrom([]string{"a", "ß", "€", "😀", "\xff", "\xe2\x82", "\xf0"})).Draw(t, "text")
		all := []byte(strings.Join(text, ""))
		var got strings.Builder
		w := &textWriter{send: func(s string) { got.WriteString(s) }}
		for rest := all; len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "piece")
			w.Write(rest[:n])
			rest = rest[n:]
		}
		w.end()
		// A run of bytes that are no text is one U+FFFD, or several where it was cut.
		squeeze := func(s string) string {
			for strings.Contains(s, "\uFFFD\uFFFD") {
				s = strings.ReplaceAll(s, "\uFFFD\uFFFD", "\uFFFD")
			}
			return s
		}
		if squeeze(got.String()) != squeeze(valid(string(all))) {
			t.Fatalf("%q became %q, want %q", all, got.String(), valid(string(all)))
		}
	})
}
