package keeper

import (
	"fmt"
	"io"

	"golang.org/x/sys/unix"
)

// Text is a descriptor of a text, for what is too long for a message.
func Text(b []byte) (fd int, err error) {
	if fd, err = unix.MemfdCreate("scaffold-text", unix.MFD_CLOEXEC); err != nil {
		return -1, fmt.Errorf("memory for a text: %w", err)
	}
	for at := 0; at < len(b); {
		n, err := unix.Write(fd, b[at:])
		if err != nil {
			unix.Close(fd)
			return -1, fmt.Errorf("memory for a text of %d bytes: %w", len(b), err)
		}
		at += n
	}
	return fd, nil
}

// CloseText closes a descriptor that Text has made.
func CloseText(fd int) error { return unix.Close(fd) }

// ReadText is what a text says, from its beginning: who else has the descriptor does not notice.
func ReadText(fd int) ([]byte, error) {
	var info unix.Stat_t
	if err := unix.Fstat(fd, &info); err != nil {
		return nil, err
	}
	b := make([]byte, info.Size)
	for at := 0; at < len(b); {
		n, err := unix.Pread(fd, b[at:], int64(at))
		if err == nil && n == 0 {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return nil, fmt.Errorf("read a text of %d bytes: %w", len(b), err)
		}
		at += n
	}
	return b, nil
}
