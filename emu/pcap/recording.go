package pcap

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"scaffold.dev/scaffold/emu"
)

// MaxRecording bounds what is read of a recording, in bytes of frames: they lie in memory while they are played.
const MaxRecording = 1 << 30

// source are the two formats.
type source interface {
	ReadPacketData() ([]byte, gopacket.CaptureInfo, error)
	LinkType() layers.LinkType
}

// Read reads a recording in the classic format or as pcapng, of Ethernet. Times begin with the first frame and go
// speed times as fast; a frame that stands before an earlier one is played together with it.
func Read(r io.Reader, speed float64) ([]emu.Played, error) {
	if !(speed > 0) {
		return nil, fmt.Errorf("speed %g of a recording: expected more than 0", speed)
	}
	s, err := open(r)
	if err != nil {
		return nil, err
	}
	if s.LinkType() != layers.LinkTypeEthernet {
		return nil, fmt.Errorf("the recording is of link type %v; expected Ethernet", s.LinkType())
	}
	var all []emu.Played
	var first time.Time
	for total := 0; ; {
		b, info, err := s.ReadPacketData()
		switch {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, fmt.Errorf("frame %d of the recording: %w", len(all)+1, err)
		case info.Length > info.CaptureLength:
			return nil, fmt.Errorf("frame %d of the recording has %d of its %d bytes; record whole frames (tcpdump -s 0)", len(all)+1, info.CaptureLength, info.Length)
		}
		if total += len(b); total > MaxRecording {
			return nil, fmt.Errorf("the recording has more than %d bytes; play it in pieces", MaxRecording)
		}
		if len(all) == 0 {
			first = info.Timestamp
		}
		at := time.Duration(float64(info.Timestamp.Sub(first)) / speed)
		if n := len(all); n > 0 {
			at = max(at, all[n-1].At)
		}
		all = append(all, emu.Played{At: at, Frame: b})
	}
}

// sectionHeader begins a file of pcapng.
const sectionHeader = "\x0a\x0d\x0d\x0a"

func open(r io.Reader) (source, error) {
	b := bufio.NewReader(r)
	start, err := b.Peek(len(sectionHeader))
	if err != nil {
		return nil, fmt.Errorf("the recording is shorter than any pcap file: %w", err)
	}
	var s source
	if string(start) == sectionHeader {
		s, err = pcapgo.NewNgReader(b, pcapgo.DefaultNgReaderOptions)
	} else {
		s, err = pcapgo.NewReader(b)
	}
	if err != nil {
		return nil, fmt.Errorf("not a pcap or pcapng file: %w", err)
	}
	return s, nil
}
