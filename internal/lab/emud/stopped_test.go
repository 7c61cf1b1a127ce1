package emud

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"scaffold.dev/scaffold/emu"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

// An engineProcess is one link between two namespaces, by an engine in a process of its own.
type engineProcess struct {
	*Client
	process *os.Process
	a, b    *nstest.NS
}

func startEngine(t *testing.T, p emu.Params) *engineProcess {
	t.Helper()
	e := &engineProcess{a: nstest.New(t, "a"), b: nstest.New(t, "b")}
	cfg := Config{Name: "stopped", Links: []Link{{Params: [2]emu.Params{p, p}}}}
	for i, ns := range []*nstest.NS{e.a, e.b} {
		netns := fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), ns.Fd())
		cfg.Links[0].Ends[i] = End{Node: ns.Name, Edge: &emu.End{Netns: netns, Dev: "eth0", MTU: 1500}}
	}
	text, err := json.Marshal(cfg)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	config, socket := filepath.Join(dir, "engine.json"), filepath.Join(dir, "engine.sock")
	if err := os.WriteFile(config, text, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], config, socket)
	cmd.Env, cmd.Stderr = append(os.Environ(), childEnv+"=1"), os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() }) // it is killed
	e.Client, e.process = Dial(socket), cmd.Process
	nstest.Wait(t, "the engine's messages above", func() error { return e.Ready(t.Context()) })
	for i, ns := range []*nstest.NS{e.a, e.b} {
		ns.Sysctl(t, "net/ipv6/conf/eth0/addr_gen_mode", "1")
		ns.Addr(t, "eth0", fmt.Sprintf("fd00::%d/64", i+1))
		ns.Up(t, "eth0")
	}
	return e
}

// send has a send a datagram to b in each millisecond until all arrived, and calls each before it.
func (e *engineProcess) send(t *testing.T, datagrams int, each func(i int)) {
	t.Helper()
	in := e.b.ListenPacket(t, "udp6", "[fd00::2]:9")
	out, err := e.a.Dial("udp6", "[fd00::2]:9")
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	arrived := make(chan error, 1)
	go func() {
		arrived <- count(in, datagrams)
	}()
	pace := time.NewTicker(time.Millisecond)
	defer pace.Stop()
	for i := range datagrams {
		<-pace.C
		each(i)
		if _, err := fmt.Fprint(out, i); err != nil {
			t.Fatal(err)
		}
	}
	if err := nstest.Receive(t, "lab link", arrived); err != nil {
		t.Fatal(err)
	}
}

func count(in net.PacketConn, datagrams int) error {
	b := make([]byte, 64)
	for range datagrams {
		if _, _, err := in.ReadFrom(b); err != nil {
			return err
		}
	}
	return nil
}

// A link of a millisecond holds few packets when the engine is stopped: nearly all that are late waited at the
// interface, unread.
func TestAnEngineThatStoodStillIsNotFaithful(t *testing.T) {
	for name, p := range map[string]emu.Params{"nothing to emulate": {}, "a millisecond": {Delay: time.Millisecond}} {
		t.Run(name, func(t *testing.T) {
			e := startEngine(t, p)
			const every, stands = 300, 30 // milliseconds: one datagram in ten finds nobody there
			e.send(t, 3*every, func(i int) {
				switch i % every {
				case 100:
					e.process.Signal(syscall.SIGSTOP) // the certificate tells
				case 100 + stands:
					e.process.Signal(syscall.SIGCONT) // the certificate tells
				}
			})
			c, err := e.Certificate(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if c.Faithful {
				t.Errorf("faithful although the engine did not run for a tenth of the time; %+v; threads %+v", c.Links, c.Shards)
			}
			t.Log(c.Reasons)
		})
	}
}
