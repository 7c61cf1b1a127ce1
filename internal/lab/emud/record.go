package emud

import (
	"context"
	"errors"
	"io"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/internal/api"
	emudv1 "scaffold.dev/scaffold/internal/lab/emud/v1"
)

// Capture writes what crosses a link, in both directions, as a pcap file, until ctx ends.
func (c *Client) Capture(ctx context.Context, link int, w io.Writer) error {
	own, cancel := context.WithCancel(ctx)
	defer cancel() // an error of w ends the stream, too
	stream, err := c.calls.Capture(own, &emudv1.CaptureRequest{Link: int32(link)})
	if err != nil {
		return c.captured(ctx, err)
	}
	defer stream.Close()
	for stream.Receive() {
		if _, err := w.Write(stream.Msg().Pcap); err != nil {
			return err
		}
	}
	return c.captured(ctx, stream.Err())
}

// captured is the end of a capture, which is as it should be once the time of who asked is over.
func (c *Client) captured(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil || api.TimedOut(err) {
		return nil
	}
	return c.fault(err)
}

// A Replay says what became of a recording.
type Replay struct {
	Frames  int `json:"frames"`
	Arrived int `json:"arrived"`
	Lost    int `json:"lost"` // for lack of memory
}

// Replay lets the frames of a pcap or pcapng file arrive at the end of a link that a node is, speed times as fast as
// they were recorded. It returns when they have arrived, or ctx ends.
func (c *Client) Replay(ctx context.Context, link int, node string, speed float64, recording io.Reader) (r Replay, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // without the whole recording nothing is played
	stream, err := c.calls.Replay(ctx)
	if err != nil {
		return r, c.fault(err)
	}
	where := &emudv1.ReplayRequest{Link: int32(link), End: text(node), Speed: &speed}
	sent := make(chan error, 1)
	go func() { sent <- send(stream, where, recording) }() // a reader that blocks does not keep the caller from an end
	select {
	case err = <-sent:
	case <-ctx.Done():
		err = c.fault(ctx.Err())
	}
	if err != nil {
		return r, err
	}
	m, err := stream.CloseAndReceive()
	if err != nil {
		return r, c.fault(err)
	}
	return Replay{int(m.Frames), int(m.Arrived), int(m.Lost)}, nil
}

// send sends a recording, of which the first piece says where. Its error is the reader's: where the engine takes no more
// its answer says why.
func send(stream *connect.ClientStreamForClientSimple[emudv1.ReplayRequest, emudv1.ReplayResponse], q *emudv1.ReplayRequest, recording io.Reader) error {
	for b := make([]byte, maxPiece); ; q = new(emudv1.ReplayRequest) {
		n, err := recording.Read(b)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		q.Pcap = b[:n]
		if stream.Send(q) != nil || err != nil {
			return nil
		}
	}
}
