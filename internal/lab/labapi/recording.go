package labapi

import (
	"context"
	"io"

	"connectrpc.com/connect"

	labv1 "scaffold.dev/scaffold/internal/lab/v1"
)

// pieces sends a recording as it is written.
type pieces struct {
	out *connect.ServerStream[labv1.CapturePiece]
}

// Write sends at once.
func (p pieces) Write(b []byte) (int, error) {
	return len(b), p.out.Send(&labv1.CapturePiece{Pcap: b})
}

// Capture sends what crosses a link until the caller goes away.
func (s calls) Capture(ctx context.Context, q *labv1.CaptureRequest, out *connect.ServerStream[labv1.CapturePiece]) error {
	l, err := s.open(q.Lab)
	if err != nil {
		return err
	}
	return engineFault(l.Engine().Capture(ctx, q.A, q.B, pieces{out}))
}

// received is the recording whose pieces come in.
type received struct {
	in *connect.ClientStream[labv1.ReplayRequest]
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

// Replay lets the frames of a recording arrive at b as if a had sent them. It reads to the end whatever is wrong: who is
// still sending does not hear why.
func (s calls) Replay(ctx context.Context, in *connect.ClientStream[labv1.ReplayRequest]) (*labv1.Replayed, error) {
	in.Receive() // without a message the lab has no name
	q := in.Msg()
	recording := &received{in, q.GetPcap()}
	defer io.Copy(io.Discard, recording) //nolint:errcheck // nothing is done with it
	l, err := s.open(q.GetLab())
	if err != nil {
		return nil, err
	}
	speed := 1.0
	if q.Speed != nil {
		speed = *q.Speed
	}
	if !(speed > 0 && speed <= 1e6) {
		return nil, bad("speed %g: expected how many times as fast as recorded, more than 0", speed)
	}
	s.cfg.Log("lab %s: replay a recording into %s:%s", l.File.Name, q.B, q.A)
	result, err := l.Engine().Replay(ctx, q.B+":"+q.A, speed, recording)
	return &labv1.Replayed{Frames: int32(result.Frames), Arrived: int32(result.Arrived), Lost: int32(result.Lost)}, engineFault(err)
}

// Certify says whether the emulator does what was asked of it.
func (s calls) Certify(ctx context.Context, q *labv1.CertifyRequest) (*labv1.Certificate, error) {
	l, err := s.open(q.Lab)
	if err != nil {
		return nil, err
	}
	ask := l.Engine().Certificate
	if q.Reset_ {
		s.cfg.Log("lab %s: the certificate begins anew", l.File.Name)
		ask = l.Engine().CertificateAnew
	}
	c, err := ask(ctx)
	if err != nil {
		return nil, err
	}
	return as(&labv1.Certificate{}, c)
}
