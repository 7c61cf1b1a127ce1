package frr

import (
	"encoding/binary"
	"fmt"
	"io"
)

// frameLen is the header of FRR's forwarding plane manager: version, type, 2 bytes of length in network order,
// which counts the header (fpm/fpm.h of FRR).
const (
	frameLen     = 4
	frameVersion = 1
	frameNetlink = 1
)

// readFrame returns the netlink messages of the next frame. The slice is valid until the next call with the
// same buffer.
func readFrame(r io.Reader, buf []byte) ([]byte, error) {
	if _, err := io.ReadFull(r, buf[:frameLen]); err != nil {
		return nil, err
	}
	size, err := frameSize(buf)
	if err != nil {
		return nil, err
	}
	body := buf[frameLen:size]
	if _, err := io.ReadFull(r, body); err != nil {
		return nil, fmt.Errorf("frame of %d bytes cut off: %w", size, err)
	}
	return body, nil
}

// maxFrame is the longest that the header's length can say.
const maxFrame = 1 << 16

func frameSize(header []byte) (int, error) {
	size := int(binary.BigEndian.Uint16(header[2:]))
	switch {
	case header[0] != frameVersion:
		return 0, fmt.Errorf("forwarding plane feed of version %d, want %d", header[0], frameVersion)
	case header[1] != frameNetlink:
		return 0, fmt.Errorf("forwarding plane feed of type %d, want netlink (%d): load zebra's module dplane_fpm_nl, not fpm", header[1], frameNetlink)
	case size < frameLen:
		return 0, fmt.Errorf("frame of %d bytes, want at least %d", size, frameLen)
	}
	return size, nil
}
