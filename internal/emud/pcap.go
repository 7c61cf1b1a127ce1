package emud

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"scaffold.dev/scaffold/emu"
	"scaffold.dev/scaffold/emu/pcap"
)

// capture streams what crosses a link until who asked goes away.
func (e *engine) capture(w http.ResponseWriter, r *http.Request) {
	_, l, err := e.linkOf(r)
	if err != nil {
		fail(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/vnd.tcpdump.pcap")
	c, err := pcap.Start(flushing{w, http.NewResponseController(w)}, l.Link, e.began)
	if err != nil {
		fail(w, err)
		return
	}
	select {
	case <-r.Context().Done():
	case <-c.Failed():
	}
	if missed, err := c.Stop(); err == nil && missed > 0 {
		logf("capture between %s and %s: %d frames came faster than they could be written", l.name(0), l.name(1), missed)
	}
}

// flushing sends what is written at once.
type flushing struct {
	io.Writer
	control *http.ResponseController
}

func (f flushing) Flush() {
	f.control.Flush() //nolint:errcheck // the next write tells
}

// A Replay says what became of a recording.
type Replay struct {
	Frames  int `json:"frames"`
	Arrived int `json:"arrived"`
	Lost    int `json:"lost"` // for lack of memory
}

// replay lets the frames of a recording arrive at an end of a link, and answers when they have.
func (e *engine) replay(w http.ResponseWriter, r *http.Request) {
	reply, err := e.play(r)
	w.Header().Set("Content-Type", "application/json")
	if err != nil {
		fail(w, err)
		return
	}
	write(w, reply)
}

func (e *engine) play(r *http.Request) (*Replay, error) {
	_, l, err := e.linkOf(r)
	if err != nil {
		return nil, err
	}
	port, err := l.portOf(r.URL.Query().Get("end"))
	if err != nil {
		return nil, err
	}
	speed := 1.0
	if text := r.URL.Query().Get("speed"); text != "" {
		if speed, err = strconv.ParseFloat(text, 64); err != nil {
			return nil, bad(fmt.Errorf("speed %q: expected a number, 1 for that of the recording", text))
		}
	}
	frames, err := pcap.Read(r.Body, speed)
	if err != nil {
		return nil, bad(err)
	}
	player, err := e.net.Play(port, frames)
	if err != nil {
		return nil, bad(err)
	}
	select {
	case <-r.Context().Done():
	case <-player.Done():
	}
	arrived, lost := player.Stop()
	return &Replay{len(frames), arrived, lost}, nil
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

// Capture writes what crosses a link, in both directions, as a pcap file, until ctx ends.
func (c *Client) Capture(ctx context.Context, link int, w io.Writer) error {
	stream, err := c.open(ctx, "GET", fmt.Sprintf("/v1/links/%d/pcap", link), nil)
	if err != nil {
		return err
	}
	defer stream.Close()
	_, err = io.Copy(w, stream)
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// Replay lets the frames of a pcap or pcapng file arrive at the end of a link that a node is, speed times as fast as
// they were recorded. It returns when they have arrived, or ctx ends.
func (c *Client) Replay(ctx context.Context, link int, node string, speed float64, recording io.Reader) (r Replay, err error) {
	path := fmt.Sprintf("/v1/links/%d/replay?end=%s&speed=%g", link, node, speed)
	return r, c.stream(ctx, "POST", path, recording, &r)
}
