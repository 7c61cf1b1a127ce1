package main

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

func TestRequestsAreRead(t *testing.T) {
	for text, want := range map[string]request{
		"\x00\x01a/b\x00octet\x00":                                 {Name: "a/b"},
		"\x00\x01a\x00OCTET\x00blksize\x001428\x00":                {Name: "a", Block: 1428},
		"\x00\x01a\x00octet\x00BLKSIZE\x0099999\x00tsize\x000\x00": {Name: "a", Block: mostBlock, Size: true},
		"\x00\x01a\x00octet\x00timeout\x006\x00odd\x00":            {Name: "a"},
	} {
		m, err := parse([]byte(text))
		if err != nil || m.op != opRead || m.request != want {
			t.Errorf("%q: %+v, %v, want %+v", text, m.request, err, want)
		}
	}
}

func TestWhatIsNoMessageIsRefusedWithItsReason(t *testing.T) {
	for text, code := range map[string]uint16{
		"\x00\x01a\x00netascii\x00":               errIllegal,
		"\x00\x01a\x00octet":                      errIllegal,
		"\x00\x01a\x00":                           errIllegal,
		"\x00\x01\x00octet\x00":                   errIllegal,
		"\x00\x02a\x00octet\x00":                  errIllegal,
		"\x00\x03\x00\x01data":                    errIllegal,
		"\x00\x01a\x00octet\x00blksize\x007\x00":  errOptions,
		"\x00\x01a\x00octet\x00blksize\x00x\x00":  errOptions,
		"\x00\x01a\x00octet\x00blksize\x00-1\x00": errOptions,
	} {
		var told *refused
		if _, err := parse([]byte(text)); !errors.As(err, &told) || told.code != code || told.text == "" {
			t.Errorf("%q: %v, want the error code %d", text, err, code)
		}
	}
	if _, err := parse([]byte("\x00\x04\x00")); !errors.Is(err, errShort) {
		t.Errorf("three bytes: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"", "\x00\x01a\x00octet\x00", "\x00\x01a\x00octet\x00blksize\x00512\x00tsize\x000\x00", "\x00\x04\x00\x01", "\x00\x05\x00\x03full\x00"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := parse(b)
		if err != nil {
			return
		}
		switch m.op {
		case opRead:
			r := m.request
			if r.Name == "" || strings.Contains(r.Name, "\x00") || r.Block != 0 && (r.Block < leastBlock || r.Block > mostBlock) {
				t.Errorf("%q became %+v", b, r)
			}
		case opAck, opError:
		default:
			t.Errorf("%q became opcode %d", b, m.op)
		}
	})
}

func TestAnswersLookAsTheRFCsSay(t *testing.T) {
	for want, got := range map[string][]byte{
		"\x00\x03\x00\x07":                           appendHeader(nil, opData, 7),
		"\x00\x05\x00\x01no\x00":                     appendError(nil, errNotFound, "no"),
		"\x00\x06blksize\x001024\x00tsize\x0077\x00": appendOptAck(nil, request{Block: 1024, Size: true}, 77),
	} {
		if !bytes.Equal(got, []byte(want)) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
