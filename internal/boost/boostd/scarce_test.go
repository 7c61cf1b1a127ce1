package boostd

import (
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/tests/nstest"
	"scaffold.dev/scaffold/internal/tests/safety"
)

// passes waits until a connection is not carried, and bytes come and go. Each that is made until then begins; one that was carried when
// that came to its end may be reset.
func (n *network) passes(f family) {
	n.t.Helper()
	l := n.server.Listen(n.t, "tcp", net.JoinHostPort(plain(f.server), "9"))
	defer l.Close()
	go func() { // ends with the listener
		for {
			s, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer s.Close()
				io.Copy(s, s)
			}()
		}
	}()
	nstest.Wait(n.t, "x: "+n.agents["x"].Output()+"\ny: "+n.agents["y"].Output(), func() error {
		c, err := n.client.Dial("tcp", l.Addr().String())
		if err != nil {
			n.t.Fatalf("%v\nx: %s\ny: %s", err, n.agents["x"].Output(), n.agents["y"].Output())
		}
		defer c.Close()
		if _, err := c.Write([]byte("here")); err != nil {
			return err
		}
		c.SetReadDeadline(time.Now().Add(nstest.Deadline))
		if _, err := io.ReadFull(c, make([]byte, 4)); err != nil {
			return err
		}
		if strings.Contains(n.y.Run(n.t, "ss", "-Htn", "dport", "=", "9"), c.LocalAddr().String()) {
			return errors.New("connections are carried still")
		}
		return nil
	})
}

// comes says something at one end, and hears it at the other.
func comes(from, to net.Conn) error {
	from.SetWriteDeadline(time.Now().Add(nstest.Deadline))
	to.SetReadDeadline(time.Now().Add(nstest.Deadline))
	if _, err := from.Write([]byte("here")); err != nil {
		return err
	}
	_, err := io.ReadFull(to, make([]byte, 4))
	return err
}

// A trunk of which one end hears nothing is none, whichever end that is: new connections pass, and are carried again behind that.
func TestATrunkThatIsDeafInOneDirectionIsDown(t *testing.T) {
	n := newNetwork(t)
	n.both()
	for name, at := range map[string]*nstest.NS{"x": n.x, "y": n.y} {
		t.Run(name+" hears nothing", func(t *testing.T) {
			n.t = t
			rules := "add table inet deaf; add chain inet deaf in { type filter hook input priority 0; }; "
			for _, end := range []string{"sport", "dport"} {
				rules += "add rule inet deaf in iifname p1 tcp " + end + " " + doorPort + " drop; "
			}
			at.Run(t, "nft", rules)
			t.Cleanup(func() { at.Try("nft", "delete table inet deaf") })
			n.passes(families[0])
			at.Run(t, "nft", "delete table inet deaf")
			n.carried()
		})
	}
}

// A worker without a descriptor left takes no connection more, and these pass; those that it has go on, and it takes others once it has
// descriptors again.
func TestWithoutDescriptorsConnectionsPass(t *testing.T) {
	safety.Test(t, safety.Flow)
	n := newNetwork(t)
	n.both()
	client, server := n.connect(families[1], "13")
	for _, name := range []string{"x", "y"} {
		t.Run(name, func(t *testing.T) {
			n.t = t
			pid := n.worker(name)
			var was unix.Rlimit
			if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &was); err != nil {
				t.Fatal(err)
			}
			none := unix.Rlimit{Cur: 3, Max: was.Max} // it is the number of the next one, and not how many there are
			if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, &none, nil); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { unix.Prlimit(pid, unix.RLIMIT_NOFILE, &was, nil) })
			n.passes(families[0])
			if err := errors.Join(comes(client, server), comes(server, client)); err != nil {
				t.Errorf("a connection of before: %v", err)
			}
			if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, &was, nil); err != nil {
				t.Fatal(err)
			}
			n.carried()
			if name == "x" && !strings.Contains(n.agents[name].Output(), "no descriptor is left") {
				t.Errorf("it has not said why: %s", n.agents[name].Output())
			}
			if now := n.worker(name); now != pid {
				t.Errorf("the worker is another one: %s", n.agents[name].Output())
			}
		})
	}
}
