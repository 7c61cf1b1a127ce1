package frame

import (
	"reflect"
	"testing"
)

// fuzz lets the parser of one type read what follows any header of that type: it refuses, or reads the same again from
// what is written.
func fuzz(f *testing.F, of Type) {
	for _, g := range golden {
		if b := g.frame.Append(nil); Type(b[0]) == of {
			f.Add(b)
			f.Add(b[:len(b)-1])
			f.Add(append(b, 0))
		}
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		if len(in) == 0 {
			return
		}
		in[0] = byte(of)
		m, err := reparse(in)
		if err != nil {
			return
		}
		again, err := reparse(m.(payloadFrame).Append(nil))
		if err != nil || !reflect.DeepEqual(again, m) {
			t.Fatalf("%#v became %#v, %v", m, again, err)
		}
	})
}

func FuzzParseHello(f *testing.F)    { fuzz(f, TypeHello) }
func FuzzParseOpen(f *testing.F)     { fuzz(f, TypeOpen) }
func FuzzParseOpened(f *testing.F)   { fuzz(f, TypeOpened) }
func FuzzParseRefused(f *testing.F)  { fuzz(f, TypeRefused) }
func FuzzParseAbort(f *testing.F)    { fuzz(f, TypeAbort) }
func FuzzParseState(f *testing.F)    { fuzz(f, TypeState) }
func FuzzParseResume(f *testing.F)   { fuzz(f, TypeResume) }
func FuzzParseTakeover(f *testing.F) { fuzz(f, TypeTakeover) }
func FuzzParseTaken(f *testing.F)    { fuzz(f, TypeTaken) }

// No header gets a reader to expect more than its type has.
func FuzzParseHeader(f *testing.F) {
	for _, g := range golden {
		f.Add(g.frame.Append(nil)[:HeaderLen])
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		h, err := ParseHeader(in)
		if err != nil {
			return
		}
		if h.Length > MaxData || h.Type != TypePing && h.End() > MaxOffset {
			t.Fatalf("%+v was taken", h)
		}
		if n, ok := h.Wanted(); ok && (n < 1 || n > MaxConnections || h.IsAnswer() || uint64(n) != h.Offset) {
			t.Fatalf("%+v asks for %d connections", h, n)
		}
		if again, err := ParseHeader(h.Append(nil)); err != nil || again != h {
			t.Fatalf("%+v became %+v, %v", h, again, err)
		}
	})
}
