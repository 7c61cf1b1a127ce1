package gateway

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/linux/private"
)

// How one gateway gives its place to the next, over a Unix socket of whole messages beside the API's: the
// next asks; the one before sends each listening socket, as long as both take connections; the next says that
// it is ready; the one before stops taking, sends the sessions of its UDP sockets and lets go of the API's
// address; the next opens that. Who dies on the way leaves the other as it was.
//
// Connections stay with the process that took them.

// handoverVersion is that of the messages. Gateways of two versions do not hand over.
const handoverVersion = 1

// handoverLimit is how long one waits for the other's message.
const handoverLimit = 10 * time.Second

// A note is one message. Kind is "ask", "socket", "sockets", "ready", "session", "done" or "refused".
type note struct {
	Kind    string
	Version int    `json:",omitempty"`
	Network string `json:",omitempty"` // of a socket, and of a session's
	Address string `json:",omitempty"`
	Who     *pair  `json:",omitempty"`
	Why     string `json:",omitempty"`
}

// handoverPath is where the next gateway asks.
func handoverPath(socket string) string { return socket + ".next" }

// A peer is the other gateway.
type peer struct{ c *net.UnixConn }

func (p peer) send(n note, of syscall.Conn) error {
	text, err := json.Marshal(n)
	if err != nil {
		return err
	}
	if err := p.c.SetDeadline(time.Now().Add(handoverLimit)); err != nil {
		return err
	}
	if of == nil {
		_, _, err = p.c.WriteMsgUnix(text, nil, nil)
		return err
	}
	raw, err := of.SyscallConn()
	if err != nil {
		return err
	}
	fail := raw.Control(func(fd uintptr) { _, _, err = p.c.WriteMsgUnix(text, unix.UnixRights(int(fd)), nil) })
	return errors.Join(fail, err)
}

// receive returns a message, and the file that came with it or nil.
func (p peer) receive() (n note, f *os.File, err error) {
	if err := p.c.SetDeadline(time.Now().Add(handoverLimit)); err != nil {
		return n, nil, err
	}
	buf, oob := make([]byte, 4096), make([]byte, unix.CmsgSpace(4))
	size, oobn, _, _, err := p.c.ReadMsgUnix(buf, oob)
	if err != nil {
		return n, nil, err
	}
	if f, err = fileOf(oob[:oobn]); err != nil {
		return n, nil, err
	}
	if err := json.Unmarshal(buf[:size], &n); err != nil {
		return n, f, fmt.Errorf("message of %d bytes: %w", size, err)
	}
	if n.Kind == "refused" {
		return n, f, errors.New(n.Why)
	}
	return n, f, nil
}

func fileOf(oob []byte) (*os.File, error) {
	if len(oob) == 0 {
		return nil, nil
	}
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil || len(messages) != 1 {
		return nil, fmt.Errorf("control message: %d of them: %w", len(messages), err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return nil, fmt.Errorf("control message: %d files: %w", len(fds), err)
	}
	unix.CloseOnExec(fds[0])
	return os.NewFile(uintptr(fds[0]), "handed over"), nil
}

// expect receives a message of one kind.
func (p peer) expect(kind string) error {
	n, f, err := p.receive()
	if f != nil {
		f.Close()
	}
	if err == nil && n.Kind != kind {
		err = fmt.Errorf("%q where %q was to come", n.Kind, kind)
	}
	return err
}

// offer waits for the next gateway as long as l is open.
func (g *Gateway) offer(l *net.UnixListener) {
	for {
		c, err := l.AcceptUnix()
		if err != nil {
			return
		}
		err = private.Peer(c)
		if err == nil {
			err = g.giveWay(peer{c})
		}
		if err != nil {
			g.log.Warn("handing over failed: this gateway goes on", "error", err)
		}
		c.Close()
	}
}

// giveWay is the part of the gateway before.
func (g *Gateway) giveWay(p peer) error {
	n, _, err := p.receive()
	if err != nil {
		return err
	}
	if n.Kind != "ask" || n.Version != handoverVersion {
		why := fmt.Sprintf("it hands over by version %d, not %d: stop it with SIGTERM and start the new one", handoverVersion, n.Version)
		return errors.Join(p.send(note{Kind: "refused", Why: why}, nil), errors.New(why))
	}
	return g.call(g.ctx, func() error {
		if g.state != serving {
			return p.send(note{Kind: "refused", Why: "it is being drained: undrain it, or wait for its end"}, nil)
		}
		for _, d := range g.doors {
			if err := p.send(note{Kind: "socket", Network: d.at.network, Address: d.at.address}, d.face.conn()); err != nil {
				return err
			}
		}
		if err := p.send(note{Kind: "sockets"}, nil); err != nil {
			return err
		}
		if err := p.expect("ready"); err != nil {
			return err
		}
		return g.letGo(p)
	})
}

// letGo stops taking, at the latest point at which that can still be undone by nobody: the next is ready.
func (g *Gateway) letGo(p peer) error {
	var errs []error
	for _, d := range g.doors {
		for _, s := range d.hand() {
			errs = append(errs, p.send(note{Kind: "session", Network: s.at.network, Address: s.at.address, Who: &s.who}, s.conn))
			s.conn.Close()
		}
	}
	g.closeAPI()
	errs = append(errs, p.send(note{Kind: "done"}, nil))
	g.former, g.doors = append(g.former, g.doors...), nil
	g.handedOver()
	return errors.Join(errs...)
}

// inherited is what the gateway before gave. Nil has nothing.
type inherited struct {
	p       peer
	sockets map[socket]*os.File
	session map[socket][]inheritedSession
}

// takeOver asks the gateway at the socket for its place; nil where there is none.
func takeOver(path string) (*inherited, error) {
	c, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: handoverPath(path), Net: "unixpacket"})
	if errors.Is(err, unix.ECONNREFUSED) || errors.Is(err, unix.ENOENT) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("take over from the gateway at %s: %w", path, errors.Unwrap(err))
	}
	if err := private.Peer(c); err != nil {
		c.Close()
		return nil, fmt.Errorf("take over from the gateway at %s: %w", path, err)
	}
	in := &inherited{p: peer{c}, sockets: map[socket]*os.File{}, session: map[socket][]inheritedSession{}}
	if err := in.take(); err != nil {
		in.close()
		return nil, fmt.Errorf("take over from the gateway at %s: %w", path, err)
	}
	return in, nil
}

func (in *inherited) take() error {
	if err := in.p.send(note{Kind: "ask", Version: handoverVersion}, nil); err != nil {
		return err
	}
	for {
		n, f, err := in.p.receive()
		if err != nil || n.Kind == "sockets" {
			return err
		}
		if f != nil {
			in.sockets[socket{n.Network, n.Address}] = f
		}
	}
}

// ready ends the taking of the one before, and returns when it has let go.
func (in *inherited) ready() error {
	if err := in.p.send(note{Kind: "ready"}, nil); err != nil {
		return err
	}
	for {
		n, f, err := in.p.receive()
		if err != nil || n.Kind == "done" {
			return err
		}
		if f == nil || n.Who == nil {
			continue
		}
		c, err := net.FilePacketConn(f)
		f.Close()
		if u, ok := c.(*net.UDPConn); ok && err == nil {
			at := socket{n.Network, n.Address}
			in.session[at] = append(in.session[at], inheritedSession{at: at, who: *n.Who, conn: u})
		}
	}
}

// close lets go of what was not used.
func (in *inherited) close() {
	if in == nil {
		return
	}
	in.p.c.Close()
	for _, f := range in.sockets {
		f.Close()
	}
	for _, all := range in.session {
		for _, s := range all {
			s.conn.Close()
		}
	}
}

// listener is the one that was given for the address, or nil.
func (in *inherited) listener(at socket) (net.Listener, error) {
	f := in.file(at)
	if f == nil {
		return nil, nil
	}
	defer f.Close()
	return net.FileListener(f)
}

func (in *inherited) packetConn(at socket) (*net.UDPConn, error) {
	f := in.file(at)
	if f == nil {
		return nil, nil
	}
	defer f.Close()
	c, err := net.FilePacketConn(f)
	if err != nil {
		return nil, err
	}
	return c.(*net.UDPConn), nil
}

func (in *inherited) file(at socket) *os.File {
	if in == nil {
		return nil
	}
	f := in.sockets[at]
	delete(in.sockets, at)
	return f
}

// sessions are those that came with a socket.
func (in *inherited) sessions(at socket) []inheritedSession {
	if in == nil {
		return nil
	}
	all := in.session[at]
	delete(in.session, at)
	return all
}
