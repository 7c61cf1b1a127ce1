package sockets

import (
	"testing"
	"unsafe"

	"scaffold.dev/scaffold/internal/bpf/bpftest"
)

// The sizes stand in sockets.h too.
func TestABI(t *testing.T) {
	for name, c := range map[string]struct{ got, want uintptr }{
		"host_row":   {unsafe.Sizeof(hooksHostRow{}), 16},
		"sock_row":   {unsafe.Sizeof(hooksSockRow{}), 48},
		"sock_event": {unsafe.Sizeof(hooksSockEvent{}), 56},
	} {
		if c.got != c.want {
			t.Errorf("%s has %d bytes, want %d", name, c.got, c.want)
		}
	}
}

func FuzzDiagAnswer(f *testing.F) {
	f.Add(make([]byte, 72))
	f.Fuzz(func(t *testing.T, b []byte) {
		parseDiag(b)
		parseEvent(b)
	})
}

func TestPinnedMapsHaveTheLayoutOfTheirVersion(t *testing.T) {
	spec, err := loadHooks()
	if err != nil {
		t.Fatal(err)
	}
	bpftest.HoldLayout(t, spec, []string{"hosts", "rings", "socks", "wildcards"}, 1,
		"the machine's set of hooks has no version in the kernel: a new layout needs another pinDir, and another number here")
}
