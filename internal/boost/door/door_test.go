package door_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/big"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"scaffold.dev/scaffold/internal/boost/door"
	"scaffold.dev/scaffold/internal/boost/frame"
	"scaffold.dev/scaffold/internal/boost/seal"
	"scaffold.dev/scaffold/internal/tests/safety"
)

var (
	agent   = netip.MustParseAddr("2001:db8::1") // two of the network's, and somebody else
	another = netip.MustParseAddr("2001:db8::2")
	unknown = netip.MustParseAddr("2001:db8:bad::1")
)

const trunk = 7

func secret(trunk uint64) (s seal.Secret) { s[0] = byte(trunk); return s }

// A world is a door whose network is pipes, in virtual time.
type world struct {
	t       *testing.T
	l       *pipes
	end     func()
	served  chan error
	mu      sync.Mutex
	counted map[door.Reason]int
	control chan *tls.Conn
	data    chan frame.Hello
}

func open(t *testing.T, c *tls.Config) *world {
	ctx, end := context.WithCancel(t.Context())
	w := &world{t: t, l: &pipes{conns: make(chan net.Conn), done: make(chan struct{})}, end: end, served: make(chan error, 1),
		counted: map[door.Reason]int{}, control: make(chan *tls.Conn, 1), data: make(chan frame.Hello, 1)}
	go func() {
		w.served <- door.Serve(ctx, w.l, door.Config{
			TLS:   c,
			Known: func(a netip.Addr) bool { return a == agent || a == another },
			Secret: func(n uint64, _ net.Conn) (seal.Secret, bool) {
				return secret(n), n == trunk
			},
			Control: func(c *tls.Conn) { w.control <- c; c.Close() },
			Data:    func(c net.Conn, h frame.Hello) { w.data <- h; c.Close() },
			Count:   func(r door.Reason) { w.mu.Lock(); w.counted[r]++; w.mu.Unlock() },
		})
	}()
	return w
}

func (w *world) close() {
	w.end()
	if err := <-w.served; err != nil {
		w.t.Errorf("the door ended with %v", err)
	}
}

// dial is a connection from an address.
func (w *world) dial(from netip.Addr) net.Conn {
	near, far := net.Pipe()
	w.l.conns <- conn{far, from}
	return near
}

// gone waits until the door has closed a connection, or the time is over, and says whether it has.
func gone(c net.Conn, within time.Duration) bool {
	c.SetReadDeadline(time.Now().Add(within))
	_, err := c.Read(make([]byte, 1))
	return errors.Is(err, io.EOF)
}

func (w *world) want(want map[door.Reason]int) {
	w.t.Helper()
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	for r, n := range want {
		if w.counted[r] != n {
			w.t.Errorf("%d were closed for %q, want %d: %v", w.counted[r], r, n, w.counted)
		}
	}
}

// Who has no agent's address is closed before anything is read.
func TestAnUnknownAddressCostsALookup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t, nil)
		defer w.close()
		began := time.Now()
		for range 1000 {
			if c := w.dial(unknown); !gone(c, door.Wait) {
				t.Fatal("a connection from an unknown address is open")
			}
		}
		if time.Since(began) != 0 {
			t.Errorf("they were waited for: %v", time.Since(began))
		}
		w.want(map[door.Reason]int{door.Unknown: 1000})
	})
}

// Ten thousand silent connections from one agent's address hold up no other agent, and are closed in time.
func TestSilentConnectionsAreFewAndShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t, nil)
		defer w.close()
		var waiting []net.Conn
		for i := range 10000 {
			c := w.dial(agent)
			if i < door.Pending {
				waiting = append(waiting, c)
			} else if !gone(c, 0) {
				synctest.Wait()
				if !gone(c, time.Nanosecond) {
					t.Fatalf("connection %d of one address may wait", i)
				}
			}
		}
		honest := w.dial(another)
		go honest.Write(hello(trunk, 1))
		if h := <-w.data; h.Connection != 1 {
			t.Errorf("another agent's connection is %+v", h)
		}
		for _, c := range waiting {
			if !gone(c, door.Wait+time.Second) {
				t.Fatal("a silent connection is open after its time")
			}
		}
		w.want(map[door.Reason]int{door.Crowded: 10000 - door.Pending, door.Silent: door.Pending})
		c := w.dial(agent) // and then there is room again
		go c.Write(hello(trunk, 2))
		<-w.data
	})
}

// A byte every second is as good as silence.
func TestSlowConnectionsAreClosedInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t, nil)
		defer w.close()
		c, began := w.dial(agent), time.Now()
		for _, b := range hello(trunk, 1) {
			if _, err := c.Write([]byte{b}); err != nil {
				break
			}
			time.Sleep(500 * time.Millisecond)
		}
		if took := time.Since(began); took > door.Wait+time.Second {
			t.Errorf("it was open for %v", took)
		}
		w.want(map[door.Reason]int{door.Silent: 1})
	})
}

// A HELLO that is not of the trunk that it names opens nothing.
func TestOnlyWhoHasTheSecretOpensADataConnection(t *testing.T) {
	safety.Test(t, safety.Door)
	good := hello(trunk, 1)
	changed := func(at int) []byte {
		b := append([]byte{}, good...)
		b[at] ^= 1
		return b
	}
	for name, c := range map[string]struct {
		sent []byte
		why  door.Reason
	}{
		"a MAC of nobody":       {changed(len(good) - 1), door.Forged},
		"another connection":    {changed(len(good) - frame.MACLen - 1), door.Forged},
		"another incarnation":   {changed(len(good) - frame.MACLen - 9), door.Forged},
		"a trunk that is gone":  {hello(trunk+1, 1), door.NoTrunk},
		"another program":       {[]byte("GET / HTTP/1.1\r\n\r\n"), door.Garbled},
		"another frame":         {append(frame.Ping(1).Append(nil), make([]byte, 80)...), door.Garbled},
		"a length that is long": {changed(5), door.Garbled},
		"no magic":              {changed(24), door.Garbled},
		"a part, then its end":  {good[:40], door.Garbled},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := open(t, nil)
				defer w.close()
				conn := w.dial(agent)
				go func() {
					conn.Write(c.sent)
					if len(c.sent) < len(good) && c.why == door.Garbled {
						conn.Close()
					}
				}()
				time.Sleep(time.Millisecond)
				w.want(map[door.Reason]int{c.why: 1})
				if len(w.data) != 0 {
					t.Error("it was taken")
				}
			})
		})
	}
}

// A control connection is one whose TLS the door's configuration takes.
func TestAControlConnectionNeedsItsHandshake(t *testing.T) {
	for name, refused := range map[string]bool{"taken": false, "refused": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := certificate(t)
				c := &tls.Config{Certificates: []tls.Certificate{server}, ClientAuth: tls.RequestClientCert,
					VerifyConnection: func(tls.ConnectionState) error {
						if refused {
							return errors.New("no agent")
						}
						return nil
					}}
				w := open(t, c)
				defer w.close()
				raw := w.dial(agent)
				near := tls.Client(raw, &tls.Config{InsecureSkipVerify: true})
				go io.Copy(io.Discard, near)
				synctest.Wait()
				if refused {
					w.want(map[door.Reason]int{door.Unproven: 1})
				} else if len(w.control) != 1 {
					t.Errorf("nobody got the connection: %v", w.counted)
				}
			})
		})
	}
}

// Without a descriptor for the next connection the door waits, and goes on.
func TestNoDescriptorsAreNoEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t, nil)
		defer w.close()
		w.l.fail(3)
		c := w.dial(agent)
		go c.Write(hello(trunk, 1))
		<-w.data
		w.want(map[door.Reason]int{door.Full: 3})
	})
}

// When the door closes, those that wait are closed, and nothing goes on.
func TestAClosedDoorLeavesNothing(t *testing.T) {
	safety.Test(t, safety.Trace)
	synctest.Test(t, func(t *testing.T) {
		w := open(t, nil)
		c := w.dial(agent)
		synctest.Wait()
		began := time.Now()
		w.close()
		if !gone(c, time.Second) || time.Since(began) != 0 {
			t.Errorf("a connection that waited outlived the door by %v", time.Since(began))
		}
	})
}

func hello(trunk, connection uint64) []byte {
	h := frame.Hello{From: 1, To: 1, Use: frame.Data, Protection: frame.Sealed, Trunk: trunk, Incarnation: 1, Connection: connection}
	h.MAC = secret(trunk).MAC(connection, seal.FromDialer, h.AppendClaim(nil))
	return h.Append(nil)
}

// pipes is a listener of connections that the test makes.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
	mu    sync.Mutex
	fails int
}

func (p *pipes) fail(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fails = n
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.fails > 0 {
			p.fails--
			go func() { p.conns <- c }()
			return nil, &net.OpError{Op: "accept", Err: syscall.EMFILE}
		}
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.once.Do(func() { close(p.done) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

// conn is a connection from an address.
type conn struct {
	net.Conn
	from netip.Addr
}

func (f conn) RemoteAddr() net.Addr { return net.TCPAddrFromAddrPort(netip.AddrPortFrom(f.from, 1)) }

// certificate is one that nobody signed.
func certificate(t *testing.T) tls.Certificate {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private}
}
