package nstest

import (
	"bytes"
	"io"
	"net"
	"os"
	"strings"
	"testing"
)

func TestMain(m *testing.M) { Main(m) }

func pair(t *testing.T) (a, b *NS) {
	a, b = New(t, "a"), New(t, "b")
	Veth(t, a, "to-b", b, "to-a")
	a.Addr(t, "to-b", "fd00::1/64")
	b.Addr(t, "to-a", "fd00::2/64")
	return a, b
}

func TestTwoNamespacesTalk(t *testing.T) {
	a, b := pair(t)
	l := b.Listen(t, "tcp", "[fd00::2]:80")
	go func() {
		if c, err := l.Accept(); err == nil {
			io.WriteString(c, "hello")
			c.Close()
		}
	}()
	c, err := a.Dial("tcp", "[fd00::2]:80")
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := io.ReadAll(c); string(got) != "hello" {
		t.Errorf("read %q", got)
	}
	if _, err := net.InterfaceByName("to-b"); err == nil {
		t.Error("the interface is in the test's own namespace: Do did not return")
	}
}

func TestProcessesRunInside(t *testing.T) {
	a, _ := pair(t)
	if out := a.Run(t, "ip", "-o", "link"); !strings.Contains(out, "to-b") {
		t.Errorf("ip link shows no to-b: %s", out)
	}
	p := a.Start(t, "sh", "-c", "echo ready; sleep 1000")
	p.WaitFor(t, "ready")
	p.Kill()
}

func TestFramesAreSeen(t *testing.T) {
	a, b := pair(t)
	in := b.Frames(t, "to-a")
	frame := append(append(append([]byte{}, b.MAC(t, "to-a")...), a.MAC(t, "to-b")...), 0x88, 0xb5, 's', 'c', 'a', 'f')
	a.Frames(t, "to-b").Send(t, frame)
	in.Next(t, "test frame", func(f []byte) bool { return bytes.Equal(f, frame) })
}

func TestRunIsPrivate(t *testing.T) {
	Root(t)
	if entries, _ := os.ReadDir("/run"); len(entries) != 1 {
		t.Errorf("/run holds %v, want scaffold alone", entries)
	}
	if err := os.Mkdir(BPFFS+"/x", 0o700); err != nil {
		t.Error(err)
	}
}
