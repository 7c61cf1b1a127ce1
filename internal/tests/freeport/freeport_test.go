package freeport

import (
	"errors"
	"net"
	"syscall"
	"testing"
)

func TestAKeptPortIsNobodyElsesAndTakesAListener(t *testing.T) {
	for _, at := range []string{Address(t), Address6(t)} {
		if c, err := net.Dial("tcp", at); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Fatalf("%s: connected %v, %v; want a refusal", at, c, err)
		}
		l, err := net.Listen("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		c, err := net.Dial("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
		l.Close()
	}
}

func TestTheKernelDoesNotGiveAKeptPortToWhoAsksForAny(t *testing.T) {
	kept := Address(t)
	var all []net.Listener
	defer func() {
		for _, l := range all {
			l.Close()
		}
	}()
	for range 2000 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		if all = append(all, l); l.Addr().String() == kept {
			t.Fatalf("port 0 became %s, which is kept", kept)
		}
	}
}
