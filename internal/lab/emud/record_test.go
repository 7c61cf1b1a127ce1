package emud

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/netip"
	"testing"
	"time"

	"scaffold.dev/scaffold/emu/pcap"
)

// recording is a file of IPv6 packets, one each microsecond.
func recording(t *testing.T, packets int, to netip.Addr) []byte {
	t.Helper()
	var text bytes.Buffer
	w, err := pcap.NewWriter(&text, pcap.Ethernet)
	if err != nil {
		t.Fatal(err)
	}
	const size = 1000
	from := netip.MustParseAddr("fd00::9")
	for i := range packets {
		frame := append(make([]byte, 12), 0x86, 0xdd, 0x60, 0, 0, 0, byte((size-40)>>8), byte((size-40)&0xff), 59, 64) // no next header
		frame = append(append(frame, from.AsSlice()...), to.AsSlice()...)
		frame = append(frame, make([]byte, size-40)...)
		if err := w.Write(time.Unix(1, int64(i)*1000), frame, len(frame)); err != nil {
			t.Fatal(err)
		}
	}
	return text.Bytes()
}

// A sink tells of each write.
type sink struct {
	text bytes.Buffer
	grew func(size int)
}

func (s *sink) Write(b []byte) (int, error) {
	n, err := s.text.Write(b)
	s.grew(s.text.Len())
	return n, err
}

// What is played into a link leaves by the next one, where it is recorded, longer than one message of either stream.
func TestWhatIsPlayedIsRecorded(t *testing.T) {
	s := serve(t, square(), Shipped())
	const packets = 300
	text := recording(t, packets, netip.MustParseAddr("fd00::3"))
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	begun, whole, ended := make(chan bool, 1), make(chan bool, 1), make(chan error, 1)
	var seen sink
	seen.grew = func(size int) {
		for _, at := range []struct {
			size int
			c    chan bool
		}{{1, begun}, {len(text), whole}} {
			if size >= at.size {
				select {
				case at.c <- true:
				default:
				}
			}
		}
	}
	go func() { ended <- s.Capture(ctx, 1, &seen) }()
	<-begun
	r, err := s.Replay(t.Context(), 0, "r1", 2, bytes.NewReader(text))
	if err != nil || r.Frames != packets || r.Arrived != packets || r.Lost != 0 {
		t.Errorf("%+v, %v", r, err)
	}
	<-whole
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	frames, err := pcap.Read(&seen.text, 1)
	if err != nil || len(frames) != packets {
		t.Errorf("%d frames, %v", len(frames), err)
	}
}

func TestARecordingThatBreaksOffIsNotPlayed(t *testing.T) {
	s := serve(t, square(), Shipped())
	broken := errors.New("the file is on a medium that is gone")
	text := recording(t, 300, netip.MustParseAddr("fd00::3")) // 24 bytes, and for each frame 16 and the frame
	_, err := s.Replay(t.Context(), 0, "r1", 1, io.MultiReader(bytes.NewReader(text[:24+100*(16+14+1000)]), failing{broken}))
	if !errors.Is(err, broken) {
		t.Error(err)
	}
	if all, err := s.Links(t.Context()); err != nil || all[1].Lines[0].Counters.Packets != 0 {
		t.Errorf("%+v, %v", all[1].Lines, err)
	}
}

type failing struct{ error }

func (f failing) Read([]byte) (int, error) { return 0, f.error }

func TestAReaderThatBlocksDoesNotKeepAReplay(t *testing.T) {
	s := serve(t, square(), Shipped())
	r, w := io.Pipe()
	defer w.Close()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { _, err := s.Replay(ctx, 0, "r1", 1, r); ended <- err }()
	if _, err := w.Write(recording(t, 1, netip.MustParseAddr("fd00::3"))); err != nil { // it was read
		t.Fatal(err)
	}
	stop()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
