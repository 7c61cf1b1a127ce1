package pcap

import (
	"fmt"
	"io"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
)

// A Framing is what the packets of a recording begin with.
type Framing uint8

// The framings.
const (
	Ethernet Framing = iota // a MAC header
	IP                      // the IP header
)

// A Writer writes a recording packet by packet, in the classic format with nanoseconds. It is for one goroutine.
type Writer struct{ file *pcapgo.Writer }

// NewWriter begins a recording.
func NewWriter(w io.Writer, f Framing) (*Writer, error) {
	link := layers.LinkTypeEthernet
	if f == IP {
		link = layers.LinkTypeRaw
	}
	file := pcapgo.NewWriterNanos(w)
	if err := file.WriteFileHeader(MaxFrame, link); err != nil {
		return nil, fmt.Errorf("recording: %w", err)
	}
	return &Writer{file}, nil
}

// Write adds a packet of which packet is the beginning, and that was length bytes long.
func (w *Writer) Write(at time.Time, packet []byte, length int) error {
	info := gopacket.CaptureInfo{Timestamp: at, CaptureLength: len(packet), Length: length}
	if err := w.file.WritePacket(info, packet); err != nil {
		return fmt.Errorf("recording: %w", err)
	}
	return nil
}
