package underlay

import (
	"bufio"
	"bytes"
	"crypto/ecdh"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/linux/nsenter"
	"scaffold.dev/scaffold/internal/linux/private"
)

// ProcessVersion is of what daemons and WireGuard processes say to each other: the two may be of different
// releases for as long as a daemon takes to start.
const ProcessVersion = 1

// Descriptors that the process is started with.
const (
	ListenerFD = 3 // where it is told what to do
	DaemonFD   = 4 // the daemon's network namespace
)

// A Setup is all that a WireGuard process is to keep.
type Setup struct {
	Key    []byte `json:"key"`    // private
	Listen uint16 `json:"listen"` // 0: any port
	Router bool   `json:"router"` // answers from the address that it was asked at; which end it is
	Peers  []Peer `json:"peers"`
}

// A Peer is one tunnel.
type Peer struct {
	Port
	Key      []byte         `json:"key"`      // public
	Endpoint netip.AddrPort `json:"endpoint"` // not valid: whence it comes
}

// A State is what a WireGuard process says of itself.
type State struct {
	Version int         `json:"version"`
	Engine  string      `json:"engine"` // "kernel" or "wireguard-go"
	Setup   Setup       `json:"setup"`  // what it keeps
	Peers   []PeerState `json:"peers"`
}

// A PeerState is what WireGuard knows of a tunnel.
type PeerState struct {
	Number    uint32         `json:"number"`
	Endpoint  netip.AddrPort `json:"endpoint"`
	Handshake time.Time      `json:"handshake"` // the last; zero without one
	Received  uint64         `json:"received"`  // bytes
	Sent      uint64         `json:"sent"`
}

// InsideUDP is the port of the VXLAN that WireGuard carries: each end knows the other by addresses that are the
// tunnel's number under 10.0.0.0/8 for the host and 11.0.0.0/8 for the router. Nobody but the process knows them.
const InsideUDP = 4789

// Inside gives a tunnel its addresses within WireGuard.
func (p Port) Inside(router bool) Port {
	host := netip.AddrFrom4([4]byte{10, byte(p.Number >> 16), byte(p.Number >> 8), byte(p.Number)})
	far := netip.AddrFrom4([4]byte{11, byte(p.Number >> 16), byte(p.Number >> 8), byte(p.Number)})
	p.Local, p.Remote, p.UDP = host, far, InsideUDP
	if router {
		p.Local, p.Remote = far, host
	}
	return p
}

// NewKey makes a private key of WireGuard.
func NewKey() []byte {
	k, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		panic(err) // crypto/rand never fails
	}
	return k.Bytes()
}

// PublicKey is the other half of a private key.
func PublicKey(private []byte) ([]byte, error) {
	k, err := ecdh.X25519().NewPrivateKey(private)
	if err != nil {
		return nil, fmt.Errorf("key of WireGuard: %w", err)
	}
	return k.PublicKey().Bytes(), nil
}

// A Process is the WireGuard process of a daemon. It lives in a network namespace of its own, so that nothing but
// what WireGuard has decrypted reaches the VXLAN inside; with it that namespace ends and all its tunnels.
type Process struct {
	socket string
}

// processTime bounds what a process may take for a task.
const processTime = 5 * time.Second

// FindProcess is the one that an earlier daemon of that name in this namespace has left, nil without one. One of
// another version is ended.
func FindProcess(name string) *Process {
	for _, socket := range []string{socketPath(name), formerName(name)} {
		p := &Process{socket: socket}
		s, err := p.State()
		if err != nil {
			continue
		}
		if s.Version != ProcessVersion {
			p.End() //nolint:errcheck // it is gone, or the next one cannot listen and says so
			continue
		}
		return p
	}
	return nil
}

// socketName is the socket's among those of the network namespace.
func socketName(name string) string { return "wireguard-" + name + ".sock" }

// socketPath is "" where there can be none.
func socketPath(name string) string {
	dir, err := private.Place()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, socketName(name))
}

// formerName is where processes listen that daemons of before have started. Anybody can bind it: who is there is asked
// of the kernel before anything is said.
func formerName(name string) string { return "@scaffold-wireguard-" + name }

// StartProcess starts one, or takes over what an earlier daemon has left. argv is the program, which calls wg.Run.
func StartProcess(name string, argv []string) (*Process, error) {
	if p := FindProcess(name); p != nil {
		return p, nil
	}
	l, err := private.Listen(socketName(name))
	if err != nil {
		return nil, fmt.Errorf("start WireGuard: %w", err)
	}
	defer l.Close()
	listener, err := l.File()
	if err != nil {
		return nil, fmt.Errorf("start WireGuard: %w", err)
	}
	defer listener.Close()
	own, err := nsenter.Here()
	if err != nil {
		return nil, fmt.Errorf("start WireGuard: %w", err)
	}
	defer own.Close()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.ExtraFiles = []*os.File{listener, own}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Cloneflags: unix.CLONE_NEWNET}
	runtime.LockOSThread() // children are born in the namespace of the thread, with CLONE_NEWNET in a new one
	err = cmd.Start()
	runtime.UnlockOSThread()
	if err != nil {
		return nil, fmt.Errorf("start WireGuard: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }() // when told, or killed; whoever talks to it notices
	// From here on the socket is the process's alone: it answers as soon as it can, and where it has died nobody does.
	l.Close()
	listener.Close()
	p := &Process{socket: l.Addr().String()}
	if _, err := p.State(); err != nil {
		cmd.Process.Kill() // if it has not died
		return nil, fmt.Errorf("start WireGuard: its process, %s, does not answer: %w (%w)", strings.Join(argv, " "), err, <-ended)
	}
	return p, nil
}

// Set has the process keep exactly these tunnels. The interfaces are made set down.
func (p *Process) Set(s Setup) error {
	body, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return p.do(http.MethodPut, body, nil)
}

// State asks what there is.
func (p *Process) State() (s State, err error) {
	err = p.do(http.MethodGet, nil, &s)
	return s, err
}

// End ends the process and its tunnels, and waits until they are gone: it closes the connection as the last thing.
func (p *Process) End() error {
	c, err := p.dial()
	if err != nil {
		return fmt.Errorf("WireGuard: %w", err)
	}
	defer c.Close()
	req, err := http.NewRequest(http.MethodDelete, processURL, nil)
	if err != nil {
		return err
	}
	if err = req.Write(c); err == nil {
		_, err = io.Copy(io.Discard, c)
	}
	if err != nil && !errors.Is(err, syscall.ECONNRESET) {
		return fmt.Errorf("WireGuard's process does not end: %w", err)
	}
	return nil
}

// processURL names nothing: there is one thing to talk about.
const processURL = "http://wireguard/"

// dial opens a connection to a process of this user's, or root's: what it is told has the private key in it. A former
// name is of the calling thread's namespace.
func (p *Process) dial() (net.Conn, error) {
	c, err := private.Dial(p.socket)
	if err == nil {
		c.SetDeadline(time.Now().Add(processTime))
	}
	return c, err
}

// do asks on a connection of its own.
func (p *Process) do(method string, body []byte, answer any) error {
	text, err := p.ask(method, body)
	if err != nil {
		return fmt.Errorf("WireGuard: %w", err)
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(text, answer)
}

func (p *Process) ask(method string, body []byte) ([]byte, error) {
	c, err := p.dial()
	if err != nil {
		return nil, err
	}
	defer c.Close()
	req, err := http.NewRequest(method, processURL, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if err := req.Write(c); err != nil {
		return nil, err
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = errors.New(string(bytes.TrimSpace(text)))
	}
	return text, err
}
