package hosts

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/protobuf/proto"

	"scaffold.dev/scaffold/internal/api"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
)

// A stream is a host's connection with its one call, Agent.Host by the Connect protocol over HTTP/2, frame by frame.
// What it puts on the wire is what a daemon does; it takes less of the processors for it than an HTTP client for all
// occasions, because they are the controller's here too.
type stream struct {
	conn net.Conn
	in   *http2.Framer
	from *bufio.Reader
	body bytes.Buffer // of messages, what was read and not taken
	took uint32       // bytes that the peer was not told of
	last atomic.Int64 // when something was read last, Unix ns

	mu  sync.Mutex // of what follows
	to  bytes.Buffer
	out *http2.Framer
}

// The parts of a message's envelope, https://connectrpc.com/docs/protocol#streaming-rpcs.
const (
	envelope   = 5
	endOfCall  = 2
	theCall    = 1        // the stream's number
	window     = 64 << 10 // HTTP/2's own, RFC 9113 §6.9.2
	readBuffer = 512
)

// request is the header block of each call: the first of its connection, so the same bytes for all.
func request(secure bool) []byte {
	var b bytes.Buffer
	e := hpack.NewEncoder(&b)
	scheme := "http"
	if secure {
		scheme = "https"
	}
	for _, f := range [][2]string{{":method", "POST"}, {":scheme", scheme}, {":path", apiv1connect.AgentHostProcedure}, {":authority", "scaffold"},
		{"content-type", "application/connect+proto"}, {"connect-protocol-version", "1"}, {"user-agent", "scaffold-bench"}} {
		e.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]}) //nolint:errcheck // into memory
	}
	return b.Bytes()
}

// open connects and begins the call; it leaves with the first message.
func open(ctx context.Context, to api.Endpoint) (*stream, error) {
	conn, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, to.Network, to.Address)
	if err != nil {
		return nil, err
	}
	if to.TLS != nil {
		config := to.TLS.Clone()
		config.NextProtos, config.ServerName = []string{"h2"}, "scaffold"
		secure := tls.Client(conn, config)
		if err := secure.HandshakeContext(ctx); err != nil {
			conn.Close()
			return nil, err
		}
		conn = secure
	}
	s := &stream{conn: conn, from: bufio.NewReaderSize(conn, readBuffer)}
	s.in, s.out = http2.NewFramer(nil, s.from), http2.NewFramer(&s.to, nil)
	s.in.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	s.last.Store(time.Now().UnixNano())
	s.to.WriteString(http2.ClientPreface)
	err = errors.Join(s.out.WriteSettings(http2.Setting{ID: http2.SettingEnablePush}),
		s.out.WriteHeaders(http2.HeadersFrameParam{StreamID: theCall, BlockFragment: request(to.TLS != nil), EndHeaders: true}))
	if err != nil {
		conn.Close()
		return nil, err
	}
	context.AfterFunc(ctx, func() { conn.Close() })
	return s, nil
}

// Send sends one message. Its stream's window is not looked at: the controller opens it again with each report that it
// has read, long before so many wait.
func (s *stream) Send(m *apiv1.HostReport) error {
	b, err := proto.MarshalOptions{}.MarshalAppend(make([]byte, envelope, 256), m)
	if err != nil {
		return err
	}
	binary.BigEndian.PutUint32(b[1:], uint32(len(b)-envelope))
	return s.write(func() error { return s.out.WriteData(theCall, false, b) })
}

// write sends what f makes, with what waits.
func (s *stream) write(f func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := f(); err != nil {
		return err
	}
	_, err := s.conn.Write(s.to.Bytes())
	s.to.Reset()
	return err
}

// Receive returns the next message.
func (s *stream) Receive() (*apiv1.HostOrder, error) {
	b, err := s.next()
	if err != nil {
		return nil, err
	}
	o := new(apiv1.HostOrder)
	return o, proto.Unmarshal(b, o)
}

// next returns the bytes of the next message, until the next call of it.
func (s *stream) next() ([]byte, error) {
	for {
		if b := s.body.Bytes(); len(b) >= envelope {
			if n := int(binary.BigEndian.Uint32(b[1:])); len(b)-envelope >= n {
				whole := s.body.Next(envelope + n)
				if whole[0]&endOfCall != 0 {
					return nil, ended(whole[envelope:])
				}
				return whole[envelope:], nil
			}
		}
		if err := s.read(); err != nil {
			return nil, err
		}
	}
}

// ended is why the controller ended the call.
func ended(b []byte) error {
	var end struct {
		Error *struct{ Code, Message string }
	}
	if err := json.Unmarshal(b, &end); err != nil || end.Error == nil {
		return errors.Join(io.EOF, err)
	}
	return fmt.Errorf("%s: %s", end.Error.Code, end.Error.Message)
}

// read takes one frame.
func (s *stream) read() error {
	f, err := s.in.ReadFrame()
	if err != nil {
		return err
	}
	s.last.Store(time.Now().UnixNano())
	switch f := f.(type) {
	case *http2.SettingsFrame:
		if !f.IsAck() {
			return s.answer(s.out.WriteSettingsAck)
		}
	case *http2.PingFrame:
		if !f.IsAck() {
			return s.answer(func() error { return s.out.WritePing(true, f.Data) })
		}
	case *http2.MetaHeadersFrame:
		if status := f.PseudoValue("status"); status != "200" && status != "" {
			return fmt.Errorf("the controller answers with HTTP status %s", status)
		}
	case *http2.DataFrame:
		s.body.Write(f.Data())
		return s.taken(uint32(len(f.Data())))
	case *http2.RSTStreamFrame:
		return fmt.Errorf("the controller ended the stream: %v", f.ErrCode)
	case *http2.GoAwayFrame:
		return fmt.Errorf("the controller ends the connection: %v", f.ErrCode)
	}
	return nil
}

// answer sends at once what nothing else follows.
func (s *stream) answer(f func() error) error {
	if s.from.Buffered() == 0 {
		return s.write(f)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return f()
}

// taken opens the windows again.
func (s *stream) taken(n uint32) error {
	if s.took += n; s.took < window/2 {
		return nil
	}
	n, s.took = s.took, 0
	return s.write(func() error {
		return errors.Join(s.out.WriteWindowUpdate(0, n), s.out.WriteWindowUpdate(theCall, n))
	})
}

// quietFor is when a daemon's client asks a silent connection whether it is there.
const quietFor = 5 * time.Second

// ping asks if nothing was read for so long.
func (s *stream) ping(now time.Time) error {
	if now.UnixNano()-s.last.Load() < int64(quietFor) {
		return nil
	}
	s.last.Store(now.UnixNano())
	return s.write(func() error { return s.out.WritePing(false, [8]byte{}) })
}

func (s *stream) close() { s.conn.Close() }
