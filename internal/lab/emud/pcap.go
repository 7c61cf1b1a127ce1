package emud

import (
	"context"
	"io"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/emu"
	"scaffold.dev/scaffold/emu/pcap"
	emudv1 "scaffold.dev/scaffold/internal/lab/emud/v1"
)

// Capture streams what crosses a link until who asked goes away.
func (e server) Capture(ctx context.Context, q *emudv1.CaptureRequest, out *connect.ServerStream[emudv1.CapturePiece]) error {
	l, err := e.linkAt(q.Link)
	if err != nil {
		return err
	}
	c, err := pcap.Start(&pieces{send: func(b []byte) error { return out.Send(&emudv1.CapturePiece{Pcap: b}) }}, l.Link, e.began)
	if err != nil {
		return err
	}
	select {
	case <-ctx.Done():
	case <-c.Failed():
	}
	if missed, err := c.Stop(); err == nil && missed > 0 {
		logf("capture between %s and %s: %d frames came faster than they could be written", l.name(0), l.name(1), missed)
	}
	return errEnding
}

// maxPiece is about how many bytes of a recording one message carries.
const maxPiece = 64 << 10

// pieces sends what is written, many frames in one message while many come.
type pieces struct {
	send func([]byte) error
	b    []byte
	err  error
}

// Write implements io.Writer.
func (p *pieces) Write(b []byte) (int, error) {
	if p.b = append(p.b, b...); len(p.b) >= maxPiece {
		p.Flush()
	}
	return len(b), p.err
}

// Flush sends what waits; the next write tells where that failed.
func (p *pieces) Flush() {
	if p.err == nil && len(p.b) > 0 {
		p.err = p.send(p.b)
	}
	p.b = p.b[:0]
}

// Replay lets the frames of a recording arrive at an end of a link, and answers when they have.
func (e server) Replay(ctx context.Context, in *connect.ClientStream[emudv1.ReplayRequest]) (*emudv1.ReplayResponse, error) {
	if !in.Receive() {
		return nil, in.Err()
	}
	first := in.Msg()
	l, err := e.linkAt(first.Link)
	if err != nil {
		return nil, err
	}
	port, err := l.portOf(first.End)
	if err != nil {
		return nil, err
	}
	speed := 1.0
	if first.Speed != nil {
		speed = *first.Speed
	}
	frames, err := pcap.Read(&received{in, first.Pcap}, speed)
	if err != nil {
		return nil, bad(err)
	}
	player, err := e.net.Play(port, frames)
	if err != nil {
		return nil, bad(err)
	}
	select {
	case <-ctx.Done():
	case <-player.Done():
	}
	arrived, lost := player.Stop()
	return &emudv1.ReplayResponse{Frames: int32(len(frames)), Arrived: int32(arrived), Lost: int32(lost)}, nil
}

// received is the recording whose pieces come in.
type received struct {
	in *connect.ClientStream[emudv1.ReplayRequest]
	b  []byte // of the last message, not read yet
}

// Read implements io.Reader.
func (r *received) Read(b []byte) (int, error) {
	for len(r.b) == 0 {
		if !r.in.Receive() {
			if err := r.in.Err(); err != nil {
				return 0, err
			}
			return 0, io.EOF
		}
		r.b = r.in.Msg().Pcap
	}
	n := copy(b, r.b)
	r.b = r.b[n:]
	return n, nil
}

// portOf is the port at the end of a link that a node is.
func (l *link) portOf(node string) (*emu.Port, error) {
	for side, end := range l.cfg.Ends {
		if end.Node == node {
			return l.Ports()[side], nil
		}
	}
	return nil, notFound("the link between %s and %s does not end at %q", l.name(0), l.name(1), node)
}
